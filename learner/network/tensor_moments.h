// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace skein {

// ExactMoments (base/number/exact_moments.h) as tensors: the same words, for rows on any device.
//   observations, which of them count -> Add -> sums of each group -> AddGroups, which groups count -> words
// All sums are of whole numbers that doubles have without rounding, so that neither the order nor the device changes a
// bit. Not thread-safe. Torch's exceptions are not caught.
class TensorMoments {
 public:
  TensorMoments(int64_t size, torch::Device device, int64_t groups = 1);

  // rows: float32 [R, size], counted: bool [R]; the first R / groups rows are of group 0, and so on. Does not wait for
  // the device. REQUIRES: magnitudes of at most kNumberBound, also where a row is not counted; groups divide R.
  void Add(const torch::Tensor& rows, const torch::Tensor& counted);
  // Adds the sums of some groups of another one of the same size and device. kept: bool [groups of the other one].
  // REQUIRES: one group.
  void AddGroups(const TensorMoments& other, const torch::Tensor& kept);
  void Clear();
  // The addresses of all tensors that are added to, always in the same order.
  std::vector<torch::Tensor*> Tensors();

  // As ExactMoments::WriteWords: int64 [groups, 2 * size] on the CPU. Waits for the device.
  torch::Tensor SumWords() const { return Words(sum_); }
  torch::Tensor SquareSumWords() const { return Words(square_sum_); }

 private:
  // A sum in words of 32 bits, the low one first, which carries go through; the last is signed. int64 [groups, size]
  // each.
  using Sum = std::vector<torch::Tensor>;

  // parts: of rows [groups, R, size], whole numbers in float64, part i in units of 2^(32 i). counted: float64 [groups,
  // 1, R].
  static void AddParts(const std::vector<torch::Tensor>& parts, const torch::Tensor& counted, Sum* sum);
  static void Carry(Sum* sum);
  torch::Tensor Words(const Sum& sum) const;

  const int64_t size_, groups_;
  const torch::Device device_;
  Sum sum_, square_sum_;
};

}  // namespace skein
