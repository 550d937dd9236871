// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/minibatch.h"

#include <torch/types.h>
#include <torch/utils.h>

namespace skein {

int64_t Minibatch::size() const {
  for (const auto& [name, tensor] : tensors()) {
    if (tensor.defined()) return tensor.size(0);
  }
  return 0;
}

Minibatch Minibatch::Each(const std::function<torch::Tensor(const torch::Tensor&)>& change) const {
  Minibatch changed;
  for (const auto& [name, tensor] : tensors()) {
    if (tensor.defined()) changed[name] = change(tensor);
  }
  return changed;
}

Minibatch Minibatch::Select(const torch::Tensor& index) const {
  return Each([&](const torch::Tensor& tensor) { return tensor.index_select(0, index); });
}

Minibatch Minibatch::Narrow(int64_t first, int64_t rows) const {
  return Each([&](const torch::Tensor& tensor) { return tensor.narrow(0, first, rows); });
}

const torch::Tensor& Minibatch::value_input() const {
  const torch::Tensor& critic_input = (*this)["critic_input"];
  return critic_input.defined() ? critic_input : (*this)["obs"];
}

}  // namespace skein
