// SPDX-License-Identifier: Apache-2.0
#include "learner/network/distribution.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <vector>

#include "tests/learner/finite_difference.h"

namespace skein {
namespace {

torch::Tensor Doubles(const std::vector<double>& values, std::vector<int64_t> shape) {
  return torch::tensor(values, torch::kFloat64).view(shape).clone();
}

TEST(GaussianLogProb, IsTheLogOfTheProductOfDensities) {
  const torch::Tensor mean = Doubles({0.5, -1, 2, 0, 0.25, -3}, {2, 3});
  const torch::Tensor action = Doubles({0.1, -1.5, 2, 1, -0.5, -2}, {2, 3});
  const torch::Tensor log_std = Doubles({-0.5, 0, 1.25}, {3});
  const torch::Tensor got = GaussianLogProb(mean, log_std, action);
  ASSERT_EQ(got.sizes(), at::IntArrayRef({2}));
  for (int i = 0; i < 2; ++i) {
    double product = 1;
    for (int j = 0; j < 3; ++j) {
      const double std = std::exp(log_std[j].item<double>());
      const double z = (action[i][j].item<double>() - mean[i][j].item<double>()) / std;
      product *= std::exp(-0.5 * z * z) / (std * std::sqrt(2 * M_PI));
    }
    EXPECT_NEAR(got[i].item<double>(), std::log(product), 1e-12);
  }
}

TEST(GaussianLogProb, OfTheMeanIsMinusLogOfRootTwoPi) {
  // One dimension, std 1: log(1 / sqrt(2 pi)) = -0.9189385...
  const torch::Tensor zero = torch::zeros({1, 1});
  EXPECT_NEAR(GaussianLogProb(zero, torch::zeros({1}), zero).item<double>(), -0.9189385332, 1e-6);
}

TEST(GaussianLogProb, TakesNoRows) {
  EXPECT_EQ(GaussianLogProb(torch::zeros({0, 3}), torch::zeros({3}), torch::zeros({0, 3})).numel(), 0);
}

TEST(GaussianLogProb, StaysAccurateInFloatForSmallAndLargeStd) {
  for (const double log_std_value : {-5.0, 2.0}) {
    const torch::Tensor mean = Doubles({0.5, -0.25}, {1, 2});
    const torch::Tensor log_std = Doubles({log_std_value, log_std_value}, {2});
    const torch::Tensor action = mean + log_std.exp() * 1.5;
    // Each dimension: -0.5 * 1.5^2 - log_std - 0.5 log 2 pi.
    const double want = 2 * (-1.125 - log_std_value - 0.5 * std::log(2 * M_PI));
    const auto f = torch::kFloat32;
    EXPECT_NEAR(GaussianLogProb(mean.to(f), log_std.to(f), action.to(f)).item<double>(), want, 1e-4);
  }
}

TEST(GaussianLogProb, GradientsFlowThroughEveryInput) {
  torch::Tensor mean = Doubles({0.5, -1, 2, 0, 0.25, -3}, {2, 3}).requires_grad_();
  torch::Tensor action = Doubles({0.1, -1.5, 2, 1, -0.5, -2}, {2, 3}).requires_grad_();
  torch::Tensor log_std = Doubles({-0.5, 0, 1.25}, {3}).requires_grad_();
  const torch::Tensor weights = Doubles({0.7, -1.3}, {2});
  const auto loss = [&] { return (GaussianLogProb(mean, log_std, action) * weights).sum(); };
  ExpectGradientMatchesDifferences(loss, mean, "mean");
  ExpectGradientMatchesDifferences(loss, action, "action");
  ExpectGradientMatchesDifferences(loss, log_std, "log_std");
}

TEST(GaussianEntropy, IsTheSumOverDimensions) {
  // One dimension of std 1: 0.5 * log(2 pi e) = 1.4189385.
  EXPECT_NEAR(GaussianEntropy(torch::zeros({1})).item<double>(), 1.4189385332, 1e-6);
  const torch::Tensor got = GaussianEntropy(Doubles({-0.5, 0, 1.25}, {3}));
  EXPECT_EQ(got.dim(), 0);
  EXPECT_NEAR(got.item<double>(), 0.75 + 3 * 1.4189385332046727, 1e-12);
}

TEST(GaussianEntropy, IsTheMeanOfMinusLogProb) {
  // Midpoint rule over +-12 standard deviations.
  const torch::Tensor log_std = Doubles({0.3}, {1});
  const int n = 4000;
  const double std = std::exp(0.3), width = 24 * std / n;
  const torch::Tensor action = ((torch::arange(n, torch::kFloat64) + 0.5) * width - 12 * std).view({n, 1});
  const torch::Tensor log_prob = GaussianLogProb(torch::zeros({n, 1}, torch::kFloat64), log_std, action);
  EXPECT_NEAR(-(log_prob.exp() * log_prob).sum().item<double>() * width, GaussianEntropy(log_std).item<double>(), 1e-9);
}

TEST(GaussianEntropy, HasTheGradientOfItsDifferences) {
  torch::Tensor log_std = Doubles({-0.5, 0, 1.25}, {3}).requires_grad_();
  ExpectGradientMatchesDifferences([&] { return GaussianEntropy(log_std) * 2; }, log_std, "log_std");
}

TEST(Categorical, LogProbAndEntropyMatchTheDefinition) {
  const torch::Tensor logits = Doubles({0.5, -1, 2, 0, 0.25, -3, 1, 1}, {2, 4});
  const torch::Tensor action = torch::tensor({2, 1}, torch::kInt64);
  const torch::Tensor log_prob = CategoricalLogProb(logits, action);
  const torch::Tensor entropy = CategoricalEntropy(logits);
  ASSERT_EQ(log_prob.sizes(), at::IntArrayRef({2}));
  ASSERT_EQ(entropy.sizes(), at::IntArrayRef({2}));
  for (int i = 0; i < 2; ++i) {
    double sum = 0;
    for (int j = 0; j < 4; ++j) sum += std::exp(logits[i][j].item<double>());
    double want_entropy = 0;
    for (int j = 0; j < 4; ++j) {
      const double p = std::exp(logits[i][j].item<double>()) / sum;
      want_entropy -= p * std::log(p);
      if (j == action[i].item<int64_t>()) {
        EXPECT_NEAR(log_prob[i].item<double>(), std::log(p), 1e-12);
      }
    }
    EXPECT_NEAR(entropy[i].item<double>(), want_entropy, 1e-12);
  }
}

TEST(Categorical, LargeLogitsDoNotOverflow) {
  // The second choice has probability exp(-2000): its log is -2000 and the entropy is 0.
  const torch::Tensor logits = torch::tensor({1000.0f, -1000.0f}).view({1, 2});
  EXPECT_EQ(CategoricalLogProb(logits, torch::tensor({1}, torch::kInt64)).item<float>(), -2000);
  EXPECT_EQ(CategoricalEntropy(logits).item<float>(), 0);
}

TEST(Categorical, EntropyOfEqualLogitsIsLogOfTheirNumber) {
  EXPECT_NEAR(CategoricalEntropy(torch::full({1, 5}, 3.0)).item<double>(), std::log(5.0), 1e-6);
}

TEST(Categorical, HasTheGradientsOfItsDifferences) {
  torch::Tensor logits = Doubles({0.5, -1, 2, 0, 0.25, -3, 1, 1}, {2, 4}).requires_grad_();
  const torch::Tensor action = torch::tensor({2, 1}, torch::kInt64);
  const torch::Tensor weights = Doubles({0.7, -1.3}, {2});
  ExpectGradientMatchesDifferences([&] { return (CategoricalLogProb(logits, action) * weights).sum(); }, logits,
                                   "log-prob by logits");
  ExpectGradientMatchesDifferences([&] { return (CategoricalEntropy(logits) * weights).sum(); }, logits,
                                   "entropy by logits");
}

}  // namespace
}  // namespace skein
