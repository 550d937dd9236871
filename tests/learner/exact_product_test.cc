// SPDX-License-Identifier: Apache-2.0
#include "learner/network/exact_product.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/number/exact_moments.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/network/tensor_moments.h"

namespace skein {
namespace {

// The row's numbers rounded to `bits` bits below the power of two above its largest magnitude.
std::vector<double> Rounded(const torch::Tensor& row, int64_t bits) {
  double largest = 0;
  for (int64_t k = 0; k < row.numel(); ++k) largest = std::max(largest, std::abs(row[k].item<double>()));
  int exponent = 0;
  std::frexp(largest, &exponent);
  const double unit = std::ldexp(1, std::max(exponent, -126) - static_cast<int>(bits));
  std::vector<double> rounded;
  for (int64_t k = 0; k < row.numel(); ++k) rounded.push_back(std::nearbyint(row[k].item<double>() / unit) * unit);
  return rounded;
}

torch::Tensor Product(const torch::Tensor& a, const torch::Tensor& b) {
  return MultiplyExactly(MakeExactRows(a), MakeExactRows(b));
}

TEST(ExactProduct, SumsHaveAllBitsOfAMantissa) {
  EXPECT_EQ(ExactBits(1), 24);
  EXPECT_EQ(ExactBits(32), 24);
  EXPECT_EQ(ExactBits(33), 23);
  EXPECT_EQ(ExactBits(128), 23);
  EXPECT_EQ(ExactBits(129), 22);
  EXPECT_EQ(ExactBits(8192), 20);
}

TEST(ExactProduct, EqualsTheLiteralOracle) {
  torch::manual_seed(3);
  for (const int64_t inner : {1, 4, 70, 513}) {
    const torch::Tensor a = torch::randn({3, 5, inner}) * torch::randn({3, 5, 1}).exp(),
                        b = torch::randn({3, 2, inner}) * torch::randn({3, 2, 1}).exp();
    const torch::Tensor got = Product(a, b);
    const torch::Tensor near = torch::bmm(a.to(torch::kFloat64), b.to(torch::kFloat64).transpose(1, 2));
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t r = 0; r < 5; ++r) {
        for (int64_t n = 0; n < 2; ++n) {
          const auto x = Rounded(a[i][r], ExactBits(inner)), y = Rounded(b[i][n], ExactBits(inner));
          long double sum = 0;  // 64 bits: these sums are exact.
          for (size_t k = 0; k < x.size(); ++k) sum += static_cast<long double>(x[k]) * y[k];
          EXPECT_EQ(got[i][r][n].item<double>(), static_cast<double>(sum));
          // Each factor is off by at most half a unit, of 2^-22 or less of the row's largest magnitude.
          const double bound = a[i][r].abs().max().item<double>() * b[i][n].abs().max().item<double>();
          EXPECT_NEAR(got[i][r][n].item<double>(), near[i][r][n].item<double>(), bound * inner * 0x1p-20);
        }
      }
    }
  }
}

TEST(ExactProduct, NeitherOrderNorBatchNorThreadsChangeABit) {
  torch::manual_seed(4);
  const torch::Tensor a = torch::randn({7, 33, 70}), b = torch::randn({7, 9, 70});
  const torch::Tensor whole = Product(a, b), order = torch::randperm(70);
  EXPECT_TRUE(torch::equal(Product(a.index_select(2, order), b.index_select(2, order)), whole));
  for (int64_t i = 0; i < 7; ++i) {
    EXPECT_TRUE(torch::equal(Product(a.narrow(0, i, 1), b.narrow(0, i, 1)), whole.narrow(0, i, 1)));
    EXPECT_TRUE(torch::equal(Product(a.narrow(1, i, 5), b), whole.narrow(1, i, 5)));
  }
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  EXPECT_TRUE(torch::equal(Product(a, b), whole));
  at::set_num_threads(threads);
}

TEST(ExactProduct, KeepsZerosSmallNumbersAndThoseThatAreNotFiniteToTheirRows) {
  torch::Tensor a = torch::zeros({1, 4, 3}), b = torch::ones({1, 1, 3});
  a[0][1].fill_(1e-42);  // Denormal.
  a[0][2].fill_(3e38);
  a[0][3][1] = std::numeric_limits<float>::infinity();
  const torch::Tensor got = Product(a, b);
  EXPECT_EQ(got[0][0][0].item<double>(), 0);
  EXPECT_NEAR(got[0][1][0].item<double>(), 3 * double{1e-42F}, 3e-45);
  EXPECT_EQ(got[0][2][0].item<double>(), 3 * double{3e38F});
  EXPECT_FALSE(std::isfinite(got[0][3][0].item<double>()));
}

TEST(TensorMoments, HasTheWordsOfExactMoments) {
  torch::manual_seed(5);
  constexpr int64_t kRows = 900, kSize = 5;
  torch::Tensor rows = torch::randn({kRows, kSize}) * torch::randn({kRows, 1}).mul(6).exp();
  rows.clamp_(-1e6, 1e6);
  rows.select(1, 3).fill_(-1e6);  // Carries all the time, downwards.
  rows.select(1, 4).mul_(1e-12);
  const torch::Tensor counted = torch::rand({kRows}) < 0.7;
  ExactMoments want(kSize);
  TensorMoments got(kSize, torch::kCPU), rest(kSize, torch::kCPU, 3);
  for (int64_t r = 0; r < kRows; ++r) {
    if (counted[r].item<bool>()) want.Add(rows[r].contiguous().data_ptr<float>());
  }
  got.Add(rows.narrow(0, 0, 1), counted.narrow(0, 0, 1));
  got.Add(rows.narrow(0, 1, 599), counted.narrow(0, 1, 599));
  // Groups of 150 rows, of which the one in the middle is no number, and is left out.
  torch::Tensor grouped = torch::full({450, kSize}, NAN), grouped_count = torch::ones({450}, torch::kBool);
  for (const int64_t half : {0, 1}) {
    grouped.narrow(0, 300 * half, 150).copy_(rows.narrow(0, 600 + 150 * half, 150));
    grouped_count.narrow(0, 300 * half, 150).copy_(counted.narrow(0, 600 + 150 * half, 150));
  }
  rest.Add(grouped, grouped_count);
  got.AddGroups(rest, torch::tensor({true, false, true}));
  torch::Tensor sum = torch::empty({1, 2 * kSize}, torch::kInt64), squares = torch::empty_like(sum);
  want.WriteWords(sum.data_ptr<int64_t>(), squares.data_ptr<int64_t>());
  EXPECT_TRUE(torch::equal(got.SumWords(), sum)) << got.SumWords() << sum;
  EXPECT_TRUE(torch::equal(got.SquareSumWords(), squares)) << got.SquareSumWords() << squares;
  got.Clear();
  EXPECT_TRUE(torch::equal(got.SumWords(), torch::zeros_like(sum)));
}

}  // namespace
}  // namespace skein
