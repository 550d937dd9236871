// SPDX-License-Identifier: Apache-2.0
#include "policy/direction.h"

#include <cmath>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/policy/make_policy.h"

namespace skein {
namespace {

using testing::ElementsAre;

PolicySpec Spec(std::vector<int64_t> hidden) {
  PolicySpec spec;
  spec.obs_size = 3;
  spec.action_size = 2;
  spec.hidden = std::move(hidden);
  return spec;
}

TEST(Direction, MovesAllWeightsAndBiasesButOnlyTheWeightsOfALinearPolicy) {
  // policy.0.weight, .bias, policy.head.weight, .bias, log_std
  EXPECT_THAT(SearchedParameters(Spec({4})), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(SearchedParameters(Spec({})), ElementsAre(0));
}

TEST(Direction, IsAStandardNormalVectorOfItsNumbers) {
  const auto draw = [](const Direction& direction) {
    RandomStream noise = direction.Noise();
    std::vector<double> values(10000);
    for (double& value : values) value = noise.Normal();
    return values;
  };
  const std::vector<double> one = draw({1, 2, 3});
  EXPECT_EQ(draw({1, 2, 3}), one);
  for (const Direction& other : {Direction{2, 2, 3}, Direction{1, 3, 3}, Direction{1, 2, 4}, Direction{1, 3, 2}}) {
    const std::vector<double> values = draw(other);
    double product = 0;
    for (size_t i = 0; i < values.size(); ++i) product += values[i] * one[i] / 10000;
    EXPECT_NEAR(product, 0, 0.05);
  }
  double mean = 0, square = 0;
  for (const double value : one) mean += value / 10000, square += value * value / 10000;
  EXPECT_NEAR(mean, 0, 0.05);
  EXPECT_NEAR(square, 1, 0.05);
}

TEST(Direction, APerturbedPolicyIsThePolicyOfThePerturbedParameters) {
  for (const PolicySpec& spec : {Spec({4, 5}), Spec({})}) {
    const auto policy = RandomPolicy(7, spec);
    const Direction direction{4, 5, 6};
    std::vector<std::vector<float>> moved = RandomParameters(spec);
    RandomStream noise(4, RandomPurpose::kDirection, 5, 6);
    for (const size_t i : SearchedParameters(spec)) {
      for (float& value : moved[i]) value = static_cast<float>(double{value} - 0.25 * noise.Normal());
    }
    const auto want = MakePolicy(7, spec, moved, Normalization::Identity(3));
    const auto got = policy->Perturbed(direction, -0.25);
    ASSERT_NE(got, nullptr);
    const std::vector<float> obs = {0.3f, -2, 1};
    std::vector<float> want_head(2), got_head(2), own_head(2);
    want->Act(obs.data(), nullptr, 1, want_head.data(), nullptr);
    got->Act(obs.data(), nullptr, 1, got_head.data(), nullptr);
    policy->Act(obs.data(), nullptr, 1, own_head.data(), nullptr);
    EXPECT_EQ(got_head, want_head);
    EXPECT_NE(got_head, own_head);
  }
}

TEST(Direction, APolicyWithAMemoryIsNotPerturbed) {
  PolicySpec spec = Spec({4});
  spec.memory = MemoryKind::kGru;
  spec.memory_size = 2;
  EXPECT_EQ(RandomPolicy(1, spec)->Perturbed({1, 2, 3}, 0.1), nullptr);
}

}  // namespace
}  // namespace skein
