// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

#include "learner/optimize/tensor_set.h"

namespace skein {

// B samples: tensors of B rows each, by the names that the loss reads. Observations are normalised.
struct Minibatch : TensorSet {
  int64_t size() const;  // B. REQUIRES: it has a tensor.
  // Applies `change` to each defined tensor, in the order of their names.
  Minibatch Each(const std::function<torch::Tensor(const torch::Tensor&)>& change) const;
  Minibatch Select(const torch::Tensor& index) const;   // Rows in the order of int64 [B'], copied.
  Minibatch Narrow(int64_t first, int64_t rows) const;  // Views of some rows.
  // Input of the value function: critic_input if defined, else obs.
  const torch::Tensor& value_input() const;
};

}  // namespace skein
