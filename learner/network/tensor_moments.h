// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace skein {

// ExactMoments (base/number/exact_moments.h) as tensors: the same words, for rows on any device.
//   observations, which of them count -> Add -> words
// All sums are of whole numbers that doubles have without rounding, so that neither the order nor the device changes a
// bit. Not thread-safe. Torch's exceptions are not caught.
class TensorMoments {
 public:
  TensorMoments(int64_t size, torch::Device device);

  // rows: float32 [R, size], counted: bool [R]. Does not wait for the device.
  // REQUIRES: magnitudes of at most kNumberBound, also where a row is not counted.
  void Add(const torch::Tensor& rows, const torch::Tensor& counted);
  // Adds what another one of the same size and device has.
  void Add(const TensorMoments& other);
  void Clear();
  // The addresses of all tensors that are added to, always in the same order.
  std::vector<torch::Tensor*> Tensors();

  // As ExactMoments::WriteWords: int64 [1, 2 * size] on the CPU. Waits for the device.
  torch::Tensor SumWords() const { return Words(sum_); }
  torch::Tensor SquareSumWords() const { return Words(square_sum_); }

 private:
  // A sum in words of 32 bits, the low one first, which carries go through; the last is signed. int64 [size] each.
  using Sum = std::vector<torch::Tensor>;

  // parts: of rows [R, size], whole numbers in float64, part i in units of 2^(32 i).
  static void AddParts(const std::vector<torch::Tensor>& parts, const torch::Tensor& counted, Sum* sum);
  static void Carry(Sum* sum);
  torch::Tensor Words(const Sum& sum) const;

  const int64_t size_;
  const torch::Device device_;
  Sum sum_, square_sum_;
};

}  // namespace skein
