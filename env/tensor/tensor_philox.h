// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>

#include "base/number/philox.h"

namespace skein {

// Computes RandomStream's numbers as tensors on any device: the same words, for many streams of one seed and purpose.
class TensorPhilox {
 public:
  TensorPhilox(uint64_t seed, RandomPurpose purpose, torch::Device device);

  // Words of the streams (a[r], b[r]), from block `first` on: int64 [R, 4 * blocks], each in [0, 2^32).
  // a, b: int64 [R], each in [0, 2^32).
  torch::Tensor Words(const torch::Tensor& a, const torch::Tensor& b, int64_t first, int64_t blocks) const;

 private:
  const int64_t purpose_;
  std::array<torch::Tensor, 2> multipliers_;       // [2, 1, 1], of even and of odd rounds.
  std::array<torch::Tensor, kPhiloxRounds> keys_;  // [2, 1, 1]
};

}  // namespace skein
