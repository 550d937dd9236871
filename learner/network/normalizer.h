// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

// Normalisers of observations and returns, with their running statistics.
namespace skein {

// Running mean and variance of vectors, in double, merged by Chan et al. 1979 (parallel variance).
// Not thread-safe; copies are deep, but the tensors that mean() and variance() return change with the next update.
class RunningMoments {
 public:
  explicit RunningMoments(int64_t size);
  RunningMoments(const RunningMoments& other);
  RunningMoments& operator=(const RunningMoments& other);

  // rows [B, size] of any floating type and device. B = 0 changes nothing. On the CPU sums run in row order on one
  // thread, so the result does not depend on the number of Torch threads; on a GPU they run in the GPU's own order.
  void Update(const torch::Tensor& rows);
  // Equals Update() with all rows that `other` was updated with, up to rounding. REQUIRES: equal size.
  void Merge(const RunningMoments& other);

  double count() const { return count_; }
  const torch::Tensor& mean() const { return mean_; }          // float64 [size]; zeros before the first update.
  const torch::Tensor& variance() const { return variance_; }  // float64 [size], of the population; ones before.
  // Sets saved values of count(), mean() and variance(); later updates give equal bits. Copies the tensors.
  // REQUIRES: shapes [size], count >= 0.
  void Restore(double count, const torch::Tensor& mean, const torch::Tensor& variance);

 private:
  void UpdateOnDevice(const torch::Tensor& rows);
  // Merges `n` rows, given by their means and the sums of squared deviations from the means.
  void Merge(double n, const double* mean, const double* squares);

  double count_ = 0;
  torch::Tensor mean_;
  torch::Tensor variance_;
};

// Normalises observations: clip((x - mean) / sqrt(variance + 1e-8), -10, 10). Snapshots contain mean and inv_std.
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
