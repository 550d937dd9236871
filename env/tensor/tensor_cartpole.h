// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "env/tensor/tensor_env.h"

namespace skein {

// CartPole-v1 (env/classic/cartpole.h) as tensors, also in float64. Numbers differ from the CPU form only as far as the
// device's sine and cosine differ from the C library's. InvalidArgument: worlds < 1, max_episode_steps < 0, or
// indices beyond 2^32.
absl::StatusOr<std::unique_ptr<TensorEnv>> MakeTensorCartPole(const TensorEnv::Options& options,
                                                              const EnvOptions& env_options);

}  // namespace skein
