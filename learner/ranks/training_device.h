// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// What learner.device says, on a node with `gpus` GPUs: auto (GPU number local_rank modulo gpus, or the CPU where there
// is none), cpu, cuda (as auto, but there must be one) or cuda:N. InvalidArgument: none of these.
// FailedPrecondition, naming what there is: there is no such GPU.
absl::StatusOr<torch::Device> ParseTrainingDevice(const std::string& setting, int local_rank, int gpus);
// With the GPUs that Torch sees; a build without CUDA sees none.
absl::StatusOr<torch::Device> ParseTrainingDevice(const std::string& setting, int local_rank);

}  // namespace skein
