// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace skein {

// Adam, Kingma & Ba 2015, algorithm 1 (betas 0.9 and 0.999). All parameters are contiguous in one buffer, so that a
// step and a gradient norm are one pass over memory each, independent of the number of layers.
// Not thread-safe. The parameters share their memory with this object from its construction on.
class FlatAdam {
 public:
  // Moves the data of `parameters` (float32 leaves, in this order) into one buffer of P elements, of which they become
  // views. Their gradients become views of a second buffer, zero at first.
  FlatAdam(const std::vector<torch::Tensor>& parameters, double epsilon);

  // [P]. Backward passes add to it; the caller sets it to zero before the first one.
  torch::Tensor& gradient() { return gradient_.used; }
  // The gradient's norm; one descent step along the gradient times `scale`. Step() consumes the gradient. REQUIRES,
  // both: parameters on the CPU.
  double GradientNorm() const;
  void Step(double lr, double scale);

  // The same without waiting for the device: one descent step with the gradient clipped to norm `max_norm` (0 = no
  // limit); no step if the gradient's norm is not finite. `lr` float64 [] on the parameters' device.
  struct Enqueued {
    torch::Tensor norm;   // float64 []
    torch::Tensor taken;  // bool []
  };
  Enqueued EnqueueStep(const torch::Tensor& lr, double max_norm);

  const torch::Tensor& parameters() const { return parameters_.used; }  // [P]
  int64_t steps() const;
  const torch::Tensor& exp_avg() const { return exp_avg_.used; }        // [P]
  const torch::Tensor& exp_avg_sq() const { return exp_avg_sq_.used; }  // [P]
  // REQUIRES: float32 [P].
  void Restore(int64_t steps, const torch::Tensor& exp_avg, const torch::Tensor& exp_avg_sq);

 private:
  // Initially zero; elements from P on stay zero.
  struct Buffer {
    torch::Tensor all;   // Size P rounded up to kAdamPadding.
    torch::Tensor used;  // [P], a view.
  };

  const double epsilon_;
  Buffer parameters_, gradient_, exp_avg_, exp_avg_sq_;
  int64_t steps_ = 0;
  torch::Tensor enqueued_steps_;  // float64 [], replaces steps_ once defined.
};

}  // namespace skein
