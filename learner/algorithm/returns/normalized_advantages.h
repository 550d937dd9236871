// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "absl/status/statusor.h"
#include "learner/optimize/minibatch_order.h"
#include "learner/ranks/collective.h"

namespace skein {

// Advantages float32 [T * M], scaled to zero mean and unit variance in each minibatch over all ranks, on the device of
// order.rows. Errors as Collective's; null: a single rank.
absl::StatusOr<torch::Tensor> NormalizedAdvantages(const torch::Tensor& advantage, const MinibatchOrder& order,
                                                   Collective* collective);

}  // namespace skein
