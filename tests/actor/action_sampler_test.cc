// SPDX-License-Identifier: Apache-2.0
#include "actor/action_sampler.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/number/philox.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actor/counting_env.h"

namespace skein {
namespace {

struct Sampled {
  std::vector<float> action, log_prob;
  std::vector<int64_t> choice;
};

// One row for every environment and agent; `head` is repeated for each of them.
Sampled Sample(uint64_t seed, const VectorEnv& env, const std::vector<float>& head, const std::vector<float>& log_std) {
  const int rows = env.size() * env.spec().num_agents;
  std::vector<float> heads;
  for (int i = 0; i < rows; ++i) heads.insert(heads.end(), head.begin(), head.end());
  Sampled sampled;
  sampled.log_prob.resize(rows);
  if (env.spec().discrete) {
    sampled.choice.resize(rows);
    SampleCategorical(seed, env, heads.data(), sampled.choice.data(), sampled.log_prob.data());
  } else {
    sampled.action.resize(heads.size());
    SampleGaussian(seed, env, heads.data(), log_std.data(), sampled.action.data(), sampled.log_prob.data());
  }
  return sampled;
}

void Step(VectorEnv* env) {
  env->Step(std::vector<float>(env->size() * env->spec().num_agents * env->spec().action_size).data());
}

// log N(a; mean, std^2) summed over dimensions, by the formula, in double.
double GaussianLogProb(const float* action, const std::vector<float>& mean, const std::vector<float>& log_std) {
  double sum = 0;
  for (size_t d = 0; d < mean.size(); ++d) {
    const double std = std::exp(double{log_std[d]});
    const double z = (double{action[d]} - double{mean[d]}) / std;
    sum += -0.5 * z * z - std::log(std) - 0.5 * std::log(2 * std::numbers::pi);
  }
  return sum;
}

TEST(SampleGaussian, HasTheMomentsItIsAskedFor) {
  const std::vector<float> mean = {1.5f, -3.0f, 0.0f}, log_std = {0.0f, -1.0f, 1.0f};
  const auto env = MakeCountingEnvs({.action_size = 3}, 20000);
  const Sampled sampled = Sample(5, *env, mean, log_std);
  for (size_t d = 0; d < 3; ++d) {
    double sum = 0, squares = 0, neighbours = 0;
    for (int e = 0; e < 20000; ++e) {
      const double z = (sampled.action[3 * e + d] - mean[d]) / std::exp(log_std[d]);
      const double z_next = (sampled.action[3 * e + (d + 1) % 3] - mean[(d + 1) % 3]) / std::exp(log_std[(d + 1) % 3]);
      sum += z;
      squares += z * z;
      neighbours += z * z_next;
    }
    // Standard errors: 1 / sqrt(20000) = 0.007 for mean and correlation, 0.01 for the variance.
    EXPECT_NEAR(sum / 20000, 0, 0.03);
    EXPECT_NEAR(squares / 20000, 1, 0.04);
    EXPECT_NEAR(neighbours / 20000, 0, 0.03);
  }
}

// Which number of which stream goes where.
TEST(SampleGaussian, NoiseIsTheStreamOfEnvironmentEpisodeAndStepInOrder) {
  for (const int agents : {1, 2}) {
    const auto env = MakeCountingEnvs({.num_agents = agents, .action_size = 3, .end = 2}, 5, 7);
    const int normals = 3 * agents, pairs = (normals + 1) / 2;
    for (int t = 0; t < 5; ++t) {
      const Sampled sampled = Sample(9, *env, {1, 2, 3}, {0, 0, 0});
      for (int e = 0; e < 5; ++e) {
        RandomStream alone(9, RandomPurpose::kAction, 7 + e, t / 2, t % 2 * pairs);
        for (int i = 0; i < normals; ++i) {
          ASSERT_NEAR(sampled.action[e * normals + i], 1 + i % 3 + alone.Normal(), 1e-6) << t << " " << e << " " << i;
        }
      }
      Step(env.get());
    }
  }
}

TEST(SampleGaussian, LogProbIsTheFormulaAtTheSampledAction) {
  const std::vector<float> mean = {0.5f, -2.0f, 1.0f}, log_std = {-0.5f, 0.25f, -2.0f};
  for (const int agents : {1, 2}) {
    const auto env = MakeCountingEnvs({.num_agents = agents, .action_size = 3}, 50);
    const Sampled sampled = Sample(9, *env, mean, log_std);
    for (size_t row = 0; row < sampled.log_prob.size(); ++row) {
      EXPECT_NEAR(sampled.log_prob[row], GaussianLogProb(&sampled.action[3 * row], mean, log_std), 1e-4);
    }
  }
}

TEST(SampleCategorical, HasTheFrequenciesOfTheSoftmax) {
  const std::vector<float> logits = {1.0f, 0.0f, -1.0f, 2.0f};
  const auto env = MakeCountingEnvs({.action_size = 4, .discrete = true}, 20000);
  const Sampled sampled = Sample(3, *env, logits, {});
  double total = 0;
  for (float logit : logits) total += std::exp(double{logit});
  std::vector<double> counts(4);
  for (size_t row = 0; row < sampled.choice.size(); ++row) {
    const int64_t c = sampled.choice[row];
    ASSERT_GE(c, 0);
    ASSERT_LT(c, 4);
    ++counts[c];
    ASSERT_NEAR(sampled.log_prob[row], std::log(std::exp(double{logits[c]}) / total), 1e-6);
  }
  // Standard error at most sqrt(0.25 / 20000) = 0.0035.
  for (int c = 0; c < 4; ++c) EXPECT_NEAR(counts[c] / 20000, std::exp(double{logits[c]}) / total, 0.015);
}

TEST(SampleCategorical, ExtremeLogitsGiveFiniteLogProbsAndNoImpossibleChoice) {
  const auto env = MakeCountingEnvs({.action_size = 3, .discrete = true}, 500);
  const float huge = std::numeric_limits<float>::max();
  for (const std::vector<float>& logits :
       {std::vector<float>{1000, -1000, -1000}, {1000, -huge, -huge}, {huge, -huge, 0}}) {
    const Sampled sampled = Sample(4, *env, logits, {});
    for (size_t row = 0; row < sampled.choice.size(); ++row) {
      ASSERT_EQ(sampled.choice[row], 0);
      ASSERT_EQ(sampled.log_prob[row], 0);  // log(1)
    }
  }
  // The impossible ones in front are passed over.
  for (int64_t c : Sample(4, *env, {-1000, -1000, 1000}, {}).choice) ASSERT_EQ(c, 2);
}

TEST(SampleGaussian, ExtremeScalesStayFinite) {
  const auto env = MakeCountingEnvs({}, 500);
  const Sampled sampled = Sample(4, *env, {1e30f, -1e30f}, {-20, 2});
  for (float value : sampled.action) ASSERT_TRUE(std::isfinite(value));
  for (float value : sampled.log_prob) ASSERT_TRUE(std::isfinite(value));
}

// Environment i's noise does not depend on which block it is stepped in.
template <typename Get>
void ExpectSameHoweverSplit(const CountingEnvOptions& options, const std::vector<float>& head,
                            const std::vector<float>& log_std, int width, Get get) {
  const auto whole = MakeCountingEnvs(options, 6), left = MakeCountingEnvs(options, 2, 0),
             right = MakeCountingEnvs(options, 4, 2);
  for (int t = 0; t < 3; ++t) {
    const auto all = Sample(11, *whole, head, log_std);
    auto joined = get(Sample(11, *left, head, log_std));
    const auto rest = get(Sample(11, *right, head, log_std));
    joined.insert(joined.end(), rest.begin(), rest.end());
    ASSERT_EQ(get(all), joined);
    ASSERT_EQ(static_cast<int>(joined.size()), 6 * options.num_agents * width);
    for (VectorEnv* env : {whole.get(), left.get(), right.get()}) Step(env);
  }
}

TEST(ActionNoise, DoesNotDependOnTheBlocks) {
  for (const int agents : {1, 3}) {
    ExpectSameHoweverSplit({.num_agents = agents, .action_size = 3}, {0, 1, 2}, {0, 0, 0}, 3,
                           [](const Sampled& sampled) { return sampled.action; });
    ExpectSameHoweverSplit({.num_agents = agents, .action_size = 5, .discrete = true}, {0, 0, 0, 0, 0}, {}, 1,
                           [](const Sampled& sampled) { return sampled.choice; });
  }
}

TEST(ActionNoise, DiffersBySeedEnvironmentAgentEpisodeAndStep) {
  const auto env = MakeCountingEnvs({.num_agents = 2, .end = 3}, 2);
  // Standard normals of 2 environments x 2 agents x 2 dimensions, over 6 steps: episodes 0 and 1, steps 0 to 2 in each.
  std::vector<float> seen;
  for (int t = 0; t < 6; ++t) {
    EXPECT_EQ(env->episode(0), t < 3 ? 0u : 1u);
    const Sampled sampled = Sample(1, *env, {0, 0}, {0, 0});
    seen.insert(seen.end(), sampled.action.begin(), sampled.action.end());
    EXPECT_EQ(Sample(1, *env, {0, 0}, {0, 0}).action, sampled.action);  // A pure function.
    EXPECT_NE(Sample(2, *env, {0, 0}, {0, 0}).action, sampled.action);
    Step(env.get());
  }
  ASSERT_EQ(seen.size(), 48u);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

}  // namespace
}  // namespace skein
