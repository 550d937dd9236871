// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace skein {

// Running mean and variance of vectors, in double, merged by Chan et al. 1979 (parallel variance).
// Not thread-safe; copies are deep, but the tensors that mean() and variance() return change with the next update.
class RunningMoments {
 public:
  explicit RunningMoments(int64_t size);
  RunningMoments(const RunningMoments& other);
  RunningMoments& operator=(const RunningMoments& other);

  // rows [B, size] of any floating type and device. B = 0 changes nothing. Sums run in row order on one thread, so the
  // result does not depend on the number of Torch threads.
  void Update(const torch::Tensor& rows);
  // As if the rows that made `other` had come after ours, up to rounding. REQUIRES: equal size.
  void Merge(const RunningMoments& other);

  double count() const { return count_; }
  const torch::Tensor& mean() const { return mean_; }          // float64 [size]; zeros before the first update.
  const torch::Tensor& variance() const { return variance_; }  // float64 [size], of the population; ones before.
  // What count(), mean() and variance() said: the moments go on from there to the bit. Copies the tensors.
  // REQUIRES: shapes [size], count >= 0.
  void Restore(double count, const torch::Tensor& mean, const torch::Tensor& variance);

 private:
  // Takes in `n` rows of these means and sums of squared deviations from them.
  void Merge(double n, const double* mean, const double* squares);

  double count_ = 0;
  torch::Tensor mean_;
  torch::Tensor variance_;
};

// Normalises observations: clip((x - mean) / sqrt(variance + 1e-8), -10, 10). The affine form is what travels.
struct ObsScale {
  torch::Tensor mean;     // float32 [O]
  torch::Tensor inv_std;  // float32 [O]
  static ObsScale Identity(int64_t size);
  static ObsScale From(const RunningMoments& moments);
  // [..., O] float32 -> the same shape, a new tensor. Not differentiable.
  torch::Tensor Apply(const torch::Tensor& obs) const;
  // [rows, O] -> out [rows, O], for a scale on the CPU.
  void Apply(const float* obs, int64_t rows, float* out) const;
};

}  // namespace skein
