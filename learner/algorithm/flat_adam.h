// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace skein {

// Adam, Kingma & Ba 2015, algorithm 1 (betas 0.9 and 0.999), over parameters that lie end to end in one buffer, so
// that a step is one pass over memory and a gradient norm another, whatever the number of layers.
// Not thread-safe. The parameters share their memory with this object from its construction on.
class FlatAdam {
 public:
  // Moves the data of `parameters` (float32 leaves, in this order) into one buffer of P elements, of which they become
  // views. Their gradients become views of a second buffer, zero at first.
  FlatAdam(const std::vector<torch::Tensor>& parameters, double epsilon);

  // [P]. Backward passes add to it; whoever starts one sets it to zero first.
  torch::Tensor& gradient() { return gradient_.used; }
  double GradientNorm() const;
  // One step down the gradient times `scale`. The gradient is consumed.
  void Step(double lr, double scale);

  int64_t steps() const { return steps_; }
  const torch::Tensor& exp_avg() const { return exp_avg_.used; }        // [P]
  const torch::Tensor& exp_avg_sq() const { return exp_avg_sq_.used; }  // [P]
  // REQUIRES: float32 [P].
  void Restore(int64_t steps, const torch::Tensor& exp_avg, const torch::Tensor& exp_avg_sq);

 private:
  // Zeros at first, and always beyond the first P.
  struct Buffer {
    torch::Tensor all;   // P rounded up, for loops without tails.
    torch::Tensor used;  // [P], a view.
  };

  const double epsilon_;
  Buffer parameters_, gradient_, exp_avg_, exp_avg_sq_;
  int64_t steps_ = 0;
};

}  // namespace skein
