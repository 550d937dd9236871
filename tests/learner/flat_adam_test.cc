// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/flat_adam.h"

#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "tests/policy/simd_levels.h"

namespace skein {
namespace {

std::vector<torch::Tensor> SomeParameters() {
  torch::manual_seed(7);
  return {torch::randn({3, 2}).requires_grad_(true), torch::randn({3}).requires_grad_(true),
          torch::randn({1}).requires_grad_(true)};
}

// A loss whose gradient depends on every parameter and on the step.
torch::Tensor LossAt(const std::vector<torch::Tensor>& p, int step) {
  return (p[0].sum(1) * p[1] + p[2]).square().sum() * (1 + 0.5 * std::sin(step));
}

TEST(FlatAdam, TakesTheStepsOfTorchAdam) {
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    const std::vector<torch::Tensor> ours = SomeParameters(), theirs = SomeParameters();
    FlatAdam adam(ours, 1e-8);
    torch::optim::Adam reference(theirs, torch::optim::AdamOptions(0.01).eps(1e-8));
    for (int step = 0; step < 50; ++step) {
      adam.gradient().zero_();
      LossAt(ours, step).backward();
      adam.Step(0.01, 1.0);
      reference.zero_grad();
      LossAt(theirs, step).backward();
      reference.step();
      for (size_t i = 0; i < ours.size(); ++i) ASSERT_TRUE(torch::allclose(ours[i], theirs[i], 1e-5, 1e-6)) << step;
    }
  }
}

TEST(FlatAdam, KeepsValuesWhenItMovesParameters) {
  const std::vector<torch::Tensor> moved = SomeParameters(), original = SomeParameters();
  const FlatAdam adam(moved, 1e-8);
  for (size_t i = 0; i < moved.size(); ++i) {
    EXPECT_TRUE(torch::equal(moved[i], original[i]));
    EXPECT_TRUE(moved[i].requires_grad());
    EXPECT_EQ(moved[i].grad().abs().sum().item<float>(), 0);
  }
}

TEST(FlatAdam, NormIsOverAllParameters) {
  std::vector<torch::Tensor> parameters = SomeParameters();
  FlatAdam adam(parameters, 1e-8);
  parameters[1].mutable_grad()[0] = 3;
  parameters[2].mutable_grad()[0] = 4;
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    EXPECT_DOUBLE_EQ(adam.GradientNorm(), 5);  // sqrt(9 + 16)
  }
}

TEST(FlatAdam, NormOfManyParametersIsTorchs) {
  torch::manual_seed(8);
  const std::vector<torch::Tensor> parameters = {torch::randn({1001}).requires_grad_(true)};
  FlatAdam adam(parameters, 1e-8);
  adam.gradient().copy_(torch::randn({1001}));
  EXPECT_NEAR(adam.GradientNorm(), adam.gradient().norm().item<double>(), 1e-4);
}

TEST(FlatAdam, ScalesTheGradientBeforeTheMoments) {
  std::vector<torch::Tensor> parameters = SomeParameters();
  FlatAdam adam(parameters, 1e-8);
  adam.gradient().fill_(2);
  adam.Step(0.0, 0.5);
  // (1 - 0.9) * 1 and (1 - 0.999) * 1.
  EXPECT_NEAR(adam.exp_avg()[0].item<double>(), 0.1, 1e-7);
  EXPECT_NEAR(adam.exp_avg_sq()[0].item<double>(), 0.001, 1e-8);
}

TEST(FlatAdam, RestoredGoesOnToTheBit) {
  const std::vector<torch::Tensor> first = SomeParameters(), second = SomeParameters();
  FlatAdam adam(first, 1e-8);
  const auto step = [](FlatAdam& on, const std::vector<torch::Tensor>& parameters, int i) {
    on.gradient().zero_();
    LossAt(parameters, i).backward();
    on.Step(0.01, 1.0);
  };
  for (int i = 0; i < 3; ++i) step(adam, first, i);
  FlatAdam restored(second, 1e-8);
  {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < first.size(); ++i) torch::Tensor(second[i]).copy_(first[i]);
  }
  restored.Restore(adam.steps(), adam.exp_avg(), adam.exp_avg_sq());
  for (int i = 3; i < 6; ++i) {
    step(adam, first, i);
    step(restored, second, i);
  }
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(torch::equal(first[i], second[i]));
}

}  // namespace
}  // namespace skein
