// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/returns/normalized_advantages.h"

#include <gtest/gtest.h>
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

}  // namespace
}  // namespace skein
