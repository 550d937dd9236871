// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo/ppo_loss.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "learner/optimize/minibatch.h"

namespace skein {
namespace {

v1::PpoConfig Config(double value_clip) {
  v1::PpoConfig config;
  config.set_clip(0.2);
  config.set_value_clip(value_clip);
  config.set_value_coefficient(0.25);
  config.set_entropy_coefficient(0.01);
  return config;
}

struct Inputs {
  torch::Tensor new_log_prob, old_log_prob, advantage, new_value, old_value, value_target, entropy;
  LossTerms Loss(const v1::PpoConfig& config) const {
    return PpoLoss(new_log_prob, old_log_prob, advantage, new_value, old_value, value_target, entropy, config);
  }
};

Inputs RandomInputs(int64_t size) {
  const auto draw = [&] { return torch::randn({size}, torch::kFloat64); };
  const torch::Tensor old_log_prob = draw();
  return {old_log_prob + 0.3 * draw(), old_log_prob, draw(), draw(), draw(), draw(), draw().abs()};
}

TEST(PpoLoss, EqualsTheScalarOracle) {
  torch::manual_seed(3);
  const int64_t size = 50;
  const Inputs in = RandomInputs(size);
  for (const double value_clip : {0.0, 0.5}) {
    double policy = 0, value = 0, entropy = 0, kl = 0, outside = 0;
    for (int64_t i = 0; i < size; ++i) {
      const auto at = [i](const torch::Tensor& x) { return x[i].item<double>(); };
      const double ratio = std::exp(at(in.new_log_prob) - at(in.old_log_prob)), a = at(in.advantage);
      policy -= std::min(ratio * a, std::min(std::max(ratio, 0.8), 1.2) * a) / size;
      double square = std::pow(at(in.new_value) - at(in.value_target), 2);
      if (value_clip > 0) {
        const double step = std::min(std::max(at(in.new_value) - at(in.old_value), -value_clip), value_clip);
        square = std::max(square, std::pow(at(in.old_value) + step - at(in.value_target), 2));
      }
      value += square / size;
      entropy += at(in.entropy) / size;
      kl += (ratio - 1 - std::log(ratio)) / size;
      outside += ratio < 0.8 || ratio > 1.2 ? 1.0 / size : 0.0;
    }
    const LossTerms terms = in.Loss(Config(value_clip));
    EXPECT_NEAR(terms.policy.item<double>(), policy, 1e-12);
    EXPECT_NEAR(terms.value.item<double>(), value, 1e-12);
    EXPECT_NEAR(terms.entropy.item<double>(), entropy, 1e-12);
    EXPECT_NEAR(terms.kl.item<double>(), kl, 1e-12);
    EXPECT_NEAR(terms.clip_fraction.item<double>(), outside, 1e-6);
    EXPECT_NEAR(terms.total.item<double>(), policy + 0.25 * value - 0.01 * entropy, 1e-12);
  }
}

TEST(PpoLoss, GradientEqualsFiniteDifferences) {
  torch::manual_seed(4);
  for (const double value_clip : {0.0, 0.5}) {
    Inputs in = RandomInputs(20);
    const v1::PpoConfig config = Config(value_clip);
    for (torch::Tensor* input : {&in.new_log_prob, &in.new_value, &in.entropy}) {
      input->requires_grad_(true);
      in.Loss(config).total.backward();
      const torch::Tensor gradient = input->grad().clone();
      input->requires_grad_(false);
      for (int64_t i = 0; i < input->size(0); ++i) {
        const double x = (*input)[i].item<double>(), step = 1e-6;
        const auto loss_at = [&](double value) {
          (*input)[i] = value;
          return in.Loss(config).total.item<double>();
        };
        const double difference = (loss_at(x + step) - loss_at(x - step)) / (2 * step);
        (*input)[i] = x;
        EXPECT_NEAR(gradient[i].item<double>(), difference, 1e-7);
      }
    }
  }
}

TEST(PpoLoss, StopsPushingARatioBeyondTheClip) {
  const auto gradient = [](double ratio, double advantage) {
    const torch::Tensor zero = torch::zeros({1}, torch::kFloat64);
    torch::Tensor log_prob = torch::full({1}, std::log(ratio), torch::kFloat64).requires_grad_(true);
    PpoLoss(log_prob, zero, torch::full({1}, advantage, torch::kFloat64), zero, zero, zero, zero, Config(0))
        .total.backward();
    return log_prob.grad().item<double>();
  };
  EXPECT_EQ(gradient(1.3, 1), 0);  // Already gained more than the clip allows.
  EXPECT_EQ(gradient(0.7, -1), 0);
  EXPECT_DOUBLE_EQ(gradient(1.3, -1), 1.3);  // Worse than before: full slope, -A ratio.
  EXPECT_DOUBLE_EQ(gradient(0.7, 1), -0.7);
  EXPECT_DOUBLE_EQ(gradient(1.1, 2), -2.2);
}

TEST(PpoLoss, AFalseLogProbabilityIsBoundedAndPushesNothing) {
  for (const double lie : {-1e6, -30.0, 30.0, 1e6}) {
    for (const double advantage : {-3.0, 3.0}) {
      const torch::Tensor zero = torch::zeros({2}), old_log_prob = torch::tensor({static_cast<float>(lie), 0.0f});
      const torch::Tensor log_prob = torch::zeros({2}).requires_grad_(true);
      const LossTerms terms =
          PpoLoss(log_prob, old_log_prob, torch::full({2}, advantage), zero, zero, zero, zero, Config(0));
      terms.total.backward();
      EXPECT_EQ(log_prob.grad()[0].item<float>(), 0);
      EXPECT_FLOAT_EQ(log_prob.grad()[1].item<float>(), static_cast<float>(-advantage / 2));
      EXPECT_TRUE(std::isfinite(terms.total.item<float>()));
      EXPECT_TRUE(std::isfinite(terms.kl.item<float>()));
    }
  }
}

TEST(PpoLoss, KlIsZeroForTheSamePolicyAndPositiveOtherwise) {
  torch::manual_seed(5);
  Inputs in = RandomInputs(8);
  EXPECT_GT(in.Loss(Config(0)).kl.item<double>(), 0);
  in.new_log_prob = in.old_log_prob;
  const LossTerms terms = in.Loss(Config(0));
  EXPECT_EQ(terms.kl.item<double>(), 0);
  EXPECT_EQ(terms.clip_fraction.item<double>(), 0);
}

TEST(PpoLoss, KlAndClipFractionCarryNoGradient) {
  torch::manual_seed(6);
  Inputs in = RandomInputs(8);
  in.new_log_prob.requires_grad_(true);
  const LossTerms terms = in.Loss(Config(0));
  EXPECT_FALSE(terms.kl.requires_grad());
  EXPECT_FALSE(terms.clip_fraction.requires_grad());
}

TEST(Minibatch, SelectsEveryField) {
  const torch::Tensor x = torch::arange(4, torch::kFloat32);
  Minibatch all;
  all["obs"] = x.view({4, 1});
  all["action"] = x.view({4, 1}) + 10;
  float more = 20;
  for (const char* name : {"log_prob", "advantage", "old_value", "value_target"}) {
    all[name] = x + more;
    more += 10;
  }
  const Minibatch part = all.Select(torch::tensor({1, 0}));
  EXPECT_EQ(part.size(), 2);
  const auto equals = [](const torch::Tensor& got, std::vector<float> want) {
    return torch::equal(got.flatten(), torch::tensor(want));
  };
  EXPECT_TRUE(equals(part["obs"], {1, 0}));
  EXPECT_TRUE(equals(part["action"], {11, 10}));
  EXPECT_TRUE(equals(part["log_prob"], {21, 20}));
  EXPECT_TRUE(equals(part["advantage"], {31, 30}));
  EXPECT_TRUE(equals(part["old_value"], {41, 40}));
  EXPECT_TRUE(equals(part["value_target"], {51, 50}));
}

}  // namespace
}  // namespace skein
