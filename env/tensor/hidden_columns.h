// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "env/tensor/tensor_env.h"
#include "env/transform/transform_options.h"

namespace skein {

// `env` with observations that lack the columns that `hide` names (kHide), as WrapInTransforms hides them. Global
// states stay whole, and have these columns where the critic sees them. InvalidArgument: it does not fit; names its
// setting.
absl::StatusOr<std::unique_ptr<TensorEnv>> HideColumns(const TransformOptions& hide, torch::Device device,
                                                       std::unique_ptr<TensorEnv> env);

}  // namespace skein
