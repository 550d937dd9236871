// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/returns/vtrace.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace skein {
namespace {

// The definition, Espeholt et al. 2018, eq. 1 with the c of remark 2, ended at the first done:
//   vs_t = V_t + sum_{k >= t} gamma^{k-t} (prod_{i=t}^{k-1} c_i) delta_k,  delta_k = rho_k (r_k + gamma V'_k - V_k)
double LiteralTarget(const AdvantageInput& input, const torch::Tensor& log_ratio, const VtraceOptions& options,
                     int64_t t, int64_t n) {
  const auto at = [n](const torch::Tensor& x, int64_t k) { return x[k][n].item<double>(); };
  double target = at(input.value, t);
  for (int64_t k = t; k < input.reward.size(0); ++k) {
    double traces = 1;
    for (int64_t i = t; i < k; ++i) {
      traces *= options.lambda * std::min(options.c_max, std::exp(at(log_ratio, i)));
    }
    double error = at(input.reward, k) - at(input.value, k);
    if (at(input.terminated, k) == 0) error += options.gamma * at(input.next_value, k);
    const double rho = std::min(options.rho_max, std::exp(at(log_ratio, k)));
    target += std::pow(options.gamma, static_cast<double>(k - t)) * traces * rho * error;
    if (at(input.done, k) != 0) break;
  }
  return target;
}

// r_t + gamma [V_{t+1} + lambda (vs_{t+1} - V_{t+1})] - V_t, with V' in place of the bracket where t is the last.
double LiteralAdvantage(const AdvantageInput& input, const torch::Tensor& log_ratio, const VtraceOptions& options,
                        int64_t t, int64_t n) {
  const auto at = [n](const torch::Tensor& x, int64_t k) { return x[k][n].item<double>(); };
  double next = at(input.terminated, t) != 0 ? 0 : at(input.next_value, t);
  if (at(input.done, t) == 0 && t + 1 < input.reward.size(0)) {
    next += options.lambda * (LiteralTarget(input, log_ratio, options, t + 1, n) - at(input.value, t + 1));
  }
  return at(input.reward, t) + options.gamma * next - at(input.value, t);
}

AdvantageInput RandomInput(int64_t steps, int64_t columns) {
  const torch::Tensor draw = torch::rand({steps, columns});
  return {torch::randn({steps, columns}), torch::randn({steps, columns}), torch::randn({steps, columns}), draw < 0.1,
          draw < 0.2};
}

torch::Tensor Column(std::vector<float> values) {
  return torch::tensor(values).view({static_cast<int64_t>(values.size()), 1});
}

TEST(Vtrace, EqualsTheSumOverProducts) {
  torch::manual_seed(1);
  for (const VtraceOptions& options :
       {VtraceOptions{0.99, 0.95, 1, 1}, VtraceOptions{1, 1, 1, 1}, VtraceOptions{0.9, 0.8, 3, 1.5},
        VtraceOptions{0.9, 0, 0.5, 0.5}, VtraceOptions{0, 0.5, 1, 1}}) {
    // Ratios from exp(-4) to exp(4): far from 1 both ways.
    for (const double spread : {0.3, 2.0}) {
      const AdvantageInput input = RandomInput(13, 4);
      const torch::Tensor log_ratio = spread * torch::randn({13, 4});
      const VtraceTargets got = Vtrace(input, log_ratio, options);
      for (int64_t t = 0; t < 13; ++t) {
        for (int64_t n = 0; n < 4; ++n) {
          EXPECT_NEAR(got.target[t][n].item<double>(), LiteralTarget(input, log_ratio, options, t, n), 2e-4);
          EXPECT_NEAR(got.advantage[t][n].item<double>(), LiteralAdvantage(input, log_ratio, options, t, n), 2e-4);
        }
      }
      EXPECT_NEAR(got.mean_rho, log_ratio.exp().clamp_max(options.rho_max).mean().item<double>(), 1e-5);
    }
  }
}

TEST(Vtrace, OnPolicyItIsGeneralizedAdvantage) {
  torch::manual_seed(2);
  const AdvantageInput input = RandomInput(40, 6);
  const VtraceTargets got = Vtrace(input, torch::zeros({40, 6}), {0.99, 0.95, 1, 1});
  const torch::Tensor want = GeneralizedAdvantage(input, 0.99, 0.95);
  EXPECT_TRUE(torch::allclose(got.advantage, want, 1e-4, 1e-5));
  EXPECT_TRUE(torch::allclose(got.target, want + input.value, 1e-4, 1e-5));
  EXPECT_EQ(got.mean_rho, 1);
}

TEST(Vtrace, CutsAnEpisodeWhereItEnds) {
  const torch::Tensor no = torch::zeros({2, 1}, torch::kBool), first = torch::tensor({true, false}).view({2, 1});
  const torch::Tensor log_ratio = Column({std::log(0.5f), std::log(4.0f)});
  const VtraceOptions options{0.5, 1, 1, 1};  // rho = c = 0.5, 1
  AdvantageInput input{Column({1, 2}), Column({10, 20}), Column({100, 200}), no, first};
  // Errors: 1 + 0.5 * 100 - 10 = 41 and 2 + 0.5 * 200 - 20 = 82; vs_1 = 20 + 82 = 102.
  // Truncated at 0: vs_0 = 10 + 0.5 * 41 = 30.5.
  VtraceTargets got = Vtrace(input, log_ratio, options);
  EXPECT_TRUE(torch::allclose(got.target, Column({30.5, 102})));
  EXPECT_TRUE(torch::allclose(got.advantage, Column({41, 82})));
  // Terminated at 0: the error is 1 - 10 = -9, vs_0 = 10 - 4.5.
  input.terminated = first;
  got = Vtrace(input, log_ratio, options);
  EXPECT_TRUE(torch::allclose(got.target, Column({5.5, 102})));
  EXPECT_TRUE(torch::allclose(got.advantage, Column({-9, 82})));
  // Neither: vs_0 = 30.5 + 0.5 * 0.5 * 82 = 51, A_0 = 41 + 0.5 * 82 = 82, where the ratio at 0 has no part.
  input.terminated = input.done = no;
  got = Vtrace(input, log_ratio, options);
  EXPECT_TRUE(torch::allclose(got.target, Column({51, 102})));
  EXPECT_TRUE(torch::allclose(got.advantage, Column({82, 82})));
}

TEST(Vtrace, ARatioOfZeroTrustsTheValueAndAnInfiniteOneIsCut) {
  const torch::Tensor no = torch::zeros({1, 2}, torch::kBool);
  const float infinity = std::numeric_limits<float>::infinity();
  const torch::Tensor five = torch::full({1, 2}, 5.0f);
  const VtraceTargets got =
      Vtrace({five, five, five, no, no}, torch::tensor({{-infinity, infinity}}), {0.5, 0.9, 2, 1});
  EXPECT_EQ(got.target[0][0].item<float>(), 5);
  EXPECT_EQ(got.target[0][1].item<float>(), 10);  // 5 + 2 (5 + 0.5 * 5 - 5)
  EXPECT_EQ(got.mean_rho, 1);                     // (0 + 2) / 2
}

TEST(Vtrace, IgnoresWhateverFollowsATermination) {
  const torch::Tensor yes = torch::ones({1, 1}, torch::kBool);
  const AdvantageInput input{Column({3}), Column({1}), Column({std::numeric_limits<float>::quiet_NaN()}), yes, yes};
  EXPECT_EQ(Vtrace(input, Column({0}), {0.9, 0.9, 1, 1}).target.item<float>(), 3);
}

TEST(Vtrace, RefusesUnequalShapes) {
  const AdvantageInput input = RandomInput(3, 2);
  EXPECT_THROW(Vtrace(input, torch::zeros({2, 3}), {0.9, 0.9, 1, 1}), c10::Error);
}

}  // namespace
}  // namespace skein
