// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

#include "learner/optimize/tensor_set.h"

namespace skein {

// B samples: tensors of B rows each, by the names that the loss knows. Observations are normalised.
struct Minibatch : TensorSet {
  int64_t size() const;  // B. REQUIRES: it has a tensor.
  // What `change` makes of each tensor that is defined, in the order of their names.
  Minibatch Each(const std::function<torch::Tensor(const torch::Tensor&)>& change) const;
  Minibatch Select(const torch::Tensor& index) const;   // Rows in the order of int64 [B'], copied.
  Minibatch Narrow(int64_t first, int64_t rows) const;  // Views of some rows.
  // What a value function reads: critic_input if there is one, else obs.
  const torch::Tensor& value_input() const;
};

}  // namespace skein
