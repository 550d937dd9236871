// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/returns/normalized_advantages.h"

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace skein {
namespace {

TEST(NormalizedAdvantages, HaveMeanZeroAndVarianceOneInEachMinibatch) {
  torch::manual_seed(1);
  const MinibatchOrder order = ShuffleMinibatches({8, 5, 0, 5}, 15, 1, 0, 0);
  const auto normalized = NormalizedAdvantages(3 + 2 * torch::randn({40}), order, nullptr);
  ASSERT_TRUE(normalized.ok());
  for (size_t i = 0; i < order.minibatches(); ++i) {
    const torch::Tensor rows = normalized->index_select(0, order.rows.narrow(0, order.begin[i], order.size[i]));
    EXPECT_NEAR(rows.mean().item<double>(), 0, 1e-6);
    EXPECT_NEAR(rows.var(/*unbiased=*/false).item<double>(), 1, 1e-5);
  }
}

TEST(NormalizedAdvantages, AGpuComputesWhatTheCpuDoes) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "Torch sees no GPU here";
  torch::manual_seed(2);
  MinibatchOrder order = ShuffleMinibatches({8, 5, 0, 5}, 15, 1, 0, 0);
  const torch::Tensor advantage = 3 + 2 * torch::randn({40});
  const auto want = NormalizedAdvantages(advantage, order, nullptr);
  order.rows = order.rows.to(torch::kCUDA);
  const auto got = NormalizedAdvantages(advantage, order, nullptr);
  ASSERT_TRUE(want.ok() && got.ok());
  EXPECT_TRUE(got->is_cuda());
  EXPECT_TRUE(torch::allclose(got->cpu(), *want, 1e-6, 1e-6));
}

}  // namespace
}  // namespace skein
