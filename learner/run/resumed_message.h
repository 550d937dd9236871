// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "learner/run/trainer.h"

namespace skein {

class Collective;

// Sends what rank 0 has resumed, or its error, to all ranks. Warnings are not sent. All ranks must call it; `mine` of
// other ranks is ignored. DataLoss: what came cannot be read. Others: rank 0's error, or Collective's.
absl::StatusOr<Trainer::Resumed> TellResumed(Collective* collective, absl::StatusOr<Trainer::Resumed> mine);

}  // namespace skein
