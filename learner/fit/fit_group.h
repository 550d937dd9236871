// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "base/process/shutdown.h"
#include "learner/fit/fit_run.h"

namespace skein {

// Runs `ranks` ranks of a training on this machine, as processes of this program. If one is lost, by a signal or with
// code 75, all start again from the newest checkpoint, at most three times a minute. Output of rank 0 is this
// process's, that of the others goes to rank-R.log in the run's folder. After an error of rank 0, which it has said
// itself, this process ends with its code; the error of another rank is returned.
absl::Status RunFitGroup(uint32_t ranks, const FitOptions& options, ShutdownSignal* shutdown);

}  // namespace skein
