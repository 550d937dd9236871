// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <memory>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "learner/algorithm/algorithm.h"
#include "learner/ranks/collective.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Makes the algorithm that the configuration selects; the only place in the learner that knows the algorithms' names.
// REQUIRES: defaults applied to `config` and validated. `collective` must outlive the result; null: a single rank.
absl::StatusOr<std::unique_ptr<Algorithm>> MakeAlgorithm(const v1::RunConfig& config, const EnvSpec& spec,
                                                         Collective* collective, torch::Device device);

}  // namespace skein
