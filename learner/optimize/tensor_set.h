// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Tensors by name, and their order in a checkpoint.
namespace skein {

// Tensors with stable names in a stable order, as a checkpoint stores them.
using StateTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// Tensors by name. A name that was never assigned gives an undefined tensor. References stay valid.
class TensorSet {
 public:
  using Map = std::map<std::string, torch::Tensor, std::less<>>;

  bool has(std::string_view name) const { return (*this)[name].defined(); }
  const torch::Tensor& operator[](std::string_view name) const {
    static const torch::Tensor undefined;
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? undefined : found->second;
  }
  torch::Tensor& operator[](std::string_view name) {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? tensors_.emplace(name, torch::Tensor()).first->second : found->second;
  }
  const Map& tensors() const { return tensors_; }  // By name; some may be undefined.

 private:
  Map tensors_;
};

}  // namespace skein
