// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cli/evaluation_result.h"

// Deterministic evaluation of a checkpoint.   checkpoint -> Policy -> VectorEnv -> EvaluationResult
namespace skein {

struct EvaluationOptions {
  std::string checkpoint;  // A checkpoint's folder, or a run's or its checkpoints folder: the newest one there.
  uint32_t episodes = 10;
  uint64_t seed = 1;
};

// Acts with the mean action (the likeliest choice if discrete). Episode i depends on (seed, i) only, up to the rounding
// of differently sized inference batches. Runs Torch on the calling thread.
// NotFound: no checkpoint there. DataLoss: it is damaged, or its tensors do not fit its configuration.
// InvalidArgument: no episodes, or its environment is unknown.
absl::StatusOr<EvaluationResult> Evaluate(const EvaluationOptions& options);

}  // namespace skein
