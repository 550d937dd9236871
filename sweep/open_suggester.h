// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "skein/v1/config.pb.h"
#include "sweep/scheduler.h"
#include "sweep/space_file.h"
#include "sweep/suggester.h"

namespace skein {

// The sampler that a space file names. `base`, `file` and `scheduler` must outlive it. `folder`: of the sweep, where a
// sampler of Optuna's keeps its state. `max_trials`: no more than a grid has points; 0 = all of them. InvalidArgument:
// no point meets the constraints. Other errors as OptunaSuggester::Start.
absl::StatusOr<std::unique_ptr<Suggester>> OpenSuggester(const SweepFile& file, const v1::RunConfig& base,
                                                         const std::string& space_path, const std::string& folder,
                                                         const std::string& journal, const Scheduler& scheduler,
                                                         uint32_t* max_trials);

}  // namespace skein
