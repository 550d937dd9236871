// SPDX-License-Identifier: Apache-2.0
#include "env/tensor/tensor_philox.h"

#include <torch/types.h>

#include <utility>
#include <vector>

namespace skein {
namespace {

constexpr int64_t kWord = 0xFFFFFFFF;

torch::Tensor Pair(int64_t first, int64_t second, torch::Device device) {
  return torch::tensor(std::vector<int64_t>{first, second}, torch::kInt64).view({2, 1, 1}).to(device);
}

}  // namespace

TensorPhilox::TensorPhilox(uint64_t seed, RandomPurpose purpose, torch::Device device)
    : purpose_(static_cast<int64_t>(purpose)),
      multipliers_{Pair(kPhiloxMultiplier0, kPhiloxMultiplier1, device),
                   Pair(kPhiloxMultiplier1, kPhiloxMultiplier0, device)} {
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    keys_[round] = round % 2 == 0 ? Pair(key1, key0, device) : Pair(key0, key1, device);
    key0 += kPhiloxKeyStep0;
    key1 += kPhiloxKeyStep1;
  }
}

torch::Tensor TensorPhilox::Words(const torch::Tensor& a, const torch::Tensor& b, int64_t first, int64_t blocks) const {
  const int64_t rows = a.size(0);
  const auto spread = [&](const torch::Tensor& column) { return column.view({rows, 1}).expand({rows, blocks}); };
  const torch::Tensor position =
      (torch::arange(blocks, a.options()) + first).bitwise_and_(kWord).expand({rows, blocks});
  // The two words that are multiplied, and those that the products' high halves meet. A round of Philox swaps the two
  // pairs, which here is left as it comes: in odd rounds all is the other way round.
  torch::Tensor factor = torch::stack({position, spread(a)});
  torch::Tensor other = torch::stack({torch::full_like(position, purpose_), spread(b)});
  for (int round = 0; round < kPhiloxRounds; ++round) {
    // 64 bits of the product are all there, whatever its sign; the shift drags the sign along, which is cut off.
    const torch::Tensor product = factor * multipliers_[round % 2];
    factor = product.bitwise_right_shift(32).bitwise_xor_(other).bitwise_xor_(keys_[round]).bitwise_and_(kWord);
    other = product.bitwise_and(kWord).flip(0);
  }
  return torch::stack({factor[0], other[1], factor[1], other[0]}, 2).view({rows, 4 * blocks});
}

}  // namespace skein
