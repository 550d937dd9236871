// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/returns/advantage.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>

namespace skein {
namespace {

// The definition, Schulman et al. 2016, eq. 16: A_t = sum_l (gamma lambda)^l delta_{t+l}, cut after the first done.
torch::Tensor LiteralAdvantage(const AdvantageInput& input, double gamma, double lambda) {
  const int64_t steps = input.reward.size(0), columns = input.reward.size(1);
  torch::Tensor advantage = torch::zeros({steps, columns}, torch::kFloat64);
  for (int64_t n = 0; n < columns; ++n) {
    for (int64_t t = 0; t < steps; ++t) {
      double sum = 0;
      for (int64_t l = 0; t + l < steps; ++l) {
        const auto at = [&](const torch::Tensor& x) { return x[t + l][n].item<double>(); };
        double delta = at(input.reward) - at(input.value);
        if (at(input.terminated) == 0) delta += gamma * at(input.next_value);
        sum += std::pow(gamma * lambda, static_cast<double>(l)) * delta;
        if (at(input.done) != 0) break;
      }
      advantage[t][n] = sum;
    }
  }
  return advantage;
}

AdvantageInput RandomInput(int64_t steps, int64_t columns) {
  const torch::Tensor draw = torch::rand({steps, columns});
  return {torch::randn({steps, columns}), torch::randn({steps, columns}), torch::randn({steps, columns}), draw < 0.1,
          draw < 0.2};
}

torch::Tensor Column(std::vector<float> values) {
  return torch::tensor(values).view({static_cast<int64_t>(values.size()), 1});
}

TEST(Advantage, EqualsTheDoubleSum) {
  torch::manual_seed(1);
  for (const auto& [gamma, lambda] :
       {std::pair(0.99, 0.95), std::pair(1.0, 1.0), std::pair(0.9, 0.0), std::pair(0.0, 0.5)}) {
    const AdvantageInput input = RandomInput(17, 5);
    const torch::Tensor got = GeneralizedAdvantage(input, gamma, lambda).to(torch::kFloat64);
    EXPECT_TRUE(torch::allclose(got, LiteralAdvantage(input, gamma, lambda), 1e-4, 1e-5)) << gamma << " " << lambda;
  }
}

TEST(Advantage, BootstrapsATruncatedEpisodeAndNotATerminatedOne) {
  const torch::Tensor no = torch::zeros({2, 1}, torch::kBool), first = torch::tensor({true, false}).view({2, 1});
  AdvantageInput input{Column({1, 2}), Column({10, 20}), Column({100, 200}), no, first};
  // Truncated at 0: A_1 = 2 + 0.5 * 200 - 20 = 82; A_0 = 1 + 0.5 * 100 - 10 = 41, nothing of A_1.
  EXPECT_TRUE(torch::equal(GeneralizedAdvantage(input, 0.5, 1.0), Column({41, 82})));
  // Terminated at 0: A_0 = 1 - 10 = -9.
  input.terminated = first;
  EXPECT_TRUE(torch::equal(GeneralizedAdvantage(input, 0.5, 1.0), Column({-9, 82})));
  // Neither: A_0 = 41 + 0.5 * 82 = 82.
  input.terminated = input.done = no;
  EXPECT_TRUE(torch::equal(GeneralizedAdvantage(input, 0.5, 1.0), Column({82, 82})));
}

TEST(Advantage, IgnoresWhateverFollowsATermination) {
  const torch::Tensor yes = torch::ones({1, 1}, torch::kBool);
  const AdvantageInput input{Column({3}), Column({1}), Column({std::numeric_limits<float>::quiet_NaN()}), yes, yes};
  EXPECT_EQ(GeneralizedAdvantage(input, 0.9, 0.9).item<float>(), 2.0f);
}

TEST(Advantage, AcceptsStridedInput) {
  torch::manual_seed(2);
  AdvantageInput input = RandomInput(6, 4);
  const torch::Tensor want = GeneralizedAdvantage(input, 0.9, 0.8);
  input.reward = input.reward.t().contiguous().t();
  input.done = input.done.t().contiguous().t();
  EXPECT_TRUE(torch::equal(GeneralizedAdvantage(input, 0.9, 0.8), want));
}

TEST(Advantage, RefusesUnequalShapes) {
  AdvantageInput input = RandomInput(3, 2);
  input.value = torch::zeros({2, 3});
  EXPECT_THROW(GeneralizedAdvantage(input, 0.9, 0.9), c10::Error);
}

}  // namespace
}  // namespace skein
