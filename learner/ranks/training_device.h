// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// The device that learner.device selects on a node with `gpus` GPUs: auto (GPU number local_rank modulo gpus, or the
// CPU if there is none), cpu, cuda (as auto, but there must be a GPU) or cuda:N. InvalidArgument: none of these.
// FailedPrecondition: there is no such GPU; the message names the GPUs there are.
absl::StatusOr<torch::Device> ParseTrainingDevice(const std::string& setting, int local_rank, int gpus,
                                                  const std::string& name = "learner.device");
// The same with the number of GPUs that Torch reports; a build without CUDA reports none. `name`: of the setting, for
// messages.
absl::StatusOr<torch::Device> ParseTrainingDevice(const std::string& setting, int local_rank,
                                                  const std::string& name = "learner.device");

}  // namespace skein
