// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/returns/posthumous_reward.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

namespace skein {
namespace {

// By the definition: the sum of what follows while the agent takes no part.
torch::Tensor Literal(const torch::Tensor& reward, const torch::Tensor& active, double gamma) {
  torch::Tensor credited = reward.to(torch::kFloat64);
  for (int64_t m = 0; m < reward.size(1); ++m) {
    for (int64_t t = 0; t < reward.size(0); ++t) {
      for (int64_t later = t + 1; later < reward.size(0) && !active[later][m].item<bool>(); ++later) {
        credited[t][m] += std::pow(gamma, static_cast<double>(later - t)) * reward[later][m].to(torch::kFloat64);
      }
    }
  }
  return credited;
}

TEST(PosthumousReward, EqualsTheDoubleSum) {
  torch::manual_seed(1);
  for (const double gamma : {0.0, 0.9, 1.0}) {
    const torch::Tensor reward = torch::randn({23, 7}), active = torch::rand({23, 7}) < 0.4;
    const torch::Tensor credited = CreditPosthumously(reward, active, gamma);
    EXPECT_TRUE(torch::allclose(credited.to(torch::kFloat64), Literal(reward, active, gamma), 1e-4, 1e-5)) << gamma;
  }
}

TEST(PosthumousReward, NothingChangesWhileAllAreAlive) {
  torch::manual_seed(2);
  const torch::Tensor reward = torch::randn({9, 4});
  EXPECT_TRUE(torch::equal(CreditPosthumously(reward, torch::ones({9, 4}, torch::kBool), 0.99), reward));
}

TEST(PosthumousReward, ItStopsAtTheNextEpisode) {
  const torch::Tensor reward = torch::tensor({{1.0f}, {2.0f}, {4.0f}, {8.0f}, {16.0f}});
  const torch::Tensor active = torch::tensor({true, false, false, true, true}).view({5, 1});
  // 1 + 2 / 2 + 4 / 4
  EXPECT_EQ(CreditPosthumously(reward, active, 0.5)[0].item<float>(), 3);
  EXPECT_EQ(CreditPosthumously(reward, active, 0.5)[3].item<float>(), 8);
}

}  // namespace
}  // namespace skein
