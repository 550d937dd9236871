// SPDX-License-Identifier: Apache-2.0
#include "env/synthetic/latency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/process/clock.h"
#include "env/vector_env.h"

namespace skein {
namespace {

using Distribution = LatencyOptions::Distribution;

// Times of `draws` steps as multiples of the mean, over keys and steps alike.
std::vector<double> Draw(Distribution distribution, int draws) {
  std::vector<double> times;
  for (int i = 0; i < draws; ++i) {
    const LatencyOptions options = {.step_ms = 20, .distribution = distribution};
    times.push_back(absl::FDivDuration(LatencyOfStep(options, 0, i % 100, i / 100), absl::Milliseconds(20)));
  }
  return times;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double FractionAbove(const std::vector<double>& values, double limit) {
  double above = 0;
  for (const double value : values) above += value > limit ? 1 : 0;
  return above / static_cast<double>(values.size());
}

TEST(LatencyOfStep, FixedStepsAllTakeTheMean) { EXPECT_THAT(Draw(Distribution::kFixed, 200), testing::Each(1.0)); }

TEST(LatencyOfStep, ExponentialStepsHaveTheMeanAndItsTail) {
  const std::vector<double> times = Draw(Distribution::kExponential, 40000);
  EXPECT_NEAR(Mean(times), 1, 0.025);  // Five standard errors of 1 / sqrt(40,000) = 0.005.
  // P(> 3) = exp(-3) = 0.0498; five standard errors: 5 sqrt(0.0498 * 0.95 / 40,000) = 0.0054.
  EXPECT_NEAR(FractionAbove(times, 3), 0.0498, 0.0054);
}

TEST(LatencyOfStep, ParetoStepsHaveTheMeanAndAHeavierTail) {
  const std::vector<double> times = Draw(Distribution::kPareto, 40000);
  // Smallest 0.6; variance 0.6^2 * 2.5 / (1.5^2 * 0.5) = 0.8, so a standard error of 0.0045.
  EXPECT_NEAR(Mean(times), 1, 0.025);
  EXPECT_NEAR(*std::min_element(times.begin(), times.end()), 0.6, 0.001);
  // P(> x) = (0.6 / x)^2.5: 0.01789 at 3 and 0.000882 at 10, where an exponential has 0.00005.
  EXPECT_NEAR(FractionAbove(times, 3), 0.01789, 0.0034);
  EXPECT_NEAR(FractionAbove(times, 10), 0.000882, 0.00075);
}

TEST(LatencyOfStep, DependsOnKeyAndStepAndNothingElse) {
  const LatencyOptions options = {.step_ms = 10, .distribution = Distribution::kExponential};
  const absl::Duration time = LatencyOfStep(options, 3, 17, 5);
  EXPECT_EQ(LatencyOfStep(options, 4, 17, 5), time);
  EXPECT_NE(LatencyOfStep(options, 3, 18, 5), time);
  EXPECT_NE(LatencyOfStep(options, 3, 17, 6), time);
}

TEST(LatencyOfStep, TheFirstEnvironmentsAreSlower) {
  const LatencyOptions options = {.step_ms = 10, .slow_envs = 2, .slow_factor = 4};
  EXPECT_EQ(LatencyOfStep(options, 0, 1, 0), absl::Milliseconds(40));
  EXPECT_EQ(LatencyOfStep(options, 1, 1, 0), absl::Milliseconds(40));
  EXPECT_EQ(LatencyOfStep(options, 2, 1, 0), absl::Milliseconds(10));
}

TEST(LatencyOfStep, IsAtMostADay) { EXPECT_EQ(LatencyOfStep({.step_ms = 1e300}, 0, 1, 0), absl::Hours(24)); }

TEST(LatencyFactor, IsANumberFromZeroToTenThousand) {
  EXPECT_EQ(ParseLatencyFactor("2.5").value(), 2.5);
  EXPECT_EQ(ParseLatencyFactor("0").value(), 0);
  EXPECT_EQ(ParseLatencyFactor("10000").value(), 10000);
  for (const char* const bad : {"", "fast", "-1", "10001", "nan", "inf", "2x"}) {
    const absl::Status status = ParseLatencyFactor(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(status.message(), std::string("SKEIN_LATENCY_FACTOR: got '") + bad + "', want a number from 0 to 10000");
  }
}

TEST(SleepLedger, TakesALateAwakeningOffTheNextSleeps) {
  SleepLedger ledger(absl::Milliseconds(10));
  EXPECT_EQ(ledger.Deadline(absl::Milliseconds(100), absl::Milliseconds(4)), absl::Milliseconds(104));
  ledger.Woke(absl::Milliseconds(104), absl::Milliseconds(110));  // Six too late: four off the next, two off the last.
  EXPECT_EQ(ledger.Deadline(absl::Milliseconds(110), absl::Milliseconds(4)), absl::Milliseconds(110));
  ledger.Woke(absl::Milliseconds(110), absl::Milliseconds(110));
  EXPECT_EQ(ledger.Deadline(absl::Milliseconds(200), absl::Milliseconds(4)), absl::Milliseconds(202));
  ledger.Woke(absl::Milliseconds(202), absl::Milliseconds(202));
  EXPECT_EQ(ledger.Deadline(absl::Milliseconds(202), absl::Milliseconds(4)), absl::Milliseconds(206));
}

TEST(SleepLedger, DoesNotHurryAfterALongStop) {
  SleepLedger ledger(absl::Milliseconds(10));
  ledger.Woke(absl::Milliseconds(10), absl::Seconds(60));
  EXPECT_EQ(ledger.Deadline(absl::Seconds(60), absl::Milliseconds(25)), absl::Seconds(60) + absl::Milliseconds(15));
  EXPECT_EQ(ledger.Deadline(absl::Seconds(61), absl::Milliseconds(25)), absl::Seconds(61) + absl::Milliseconds(25));
}

TEST(Latency, RewardsFollowingTheFirstObservation) {
  const std::unique_ptr<Env> env = MakeLatency({}).value();
  RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
  env->Reset(random);
  for (int t = 0; t < 100; ++t) {
    float obs[4], next[4], reward = 1;
    env->Observe(obs);
    EXPECT_NEAR(obs[2], 2 * obs[0] * obs[1], 1e-6);  // sin 2p
    EXPECT_NEAR(obs[3], 1 - 2 * obs[0] * obs[0], 1e-6);
    const float action = t % 2 == 0 ? obs[0] : 0.5f;
    EXPECT_FALSE(env->Step(&action, &reward));
    EXPECT_NEAR(reward, t % 2 == 0 ? 0 : -(0.5 - obs[0]) * (0.5 - obs[0]), 1e-6);
    env->Observe(next);
    EXPECT_NEAR(next[0], obs[0] * std::cos(0.1) + obs[1] * std::sin(0.1), 1e-6);  // sin(p + 0.1)
  }
}

TEST(Latency, AStateThatNobodySavedIsHarmless) {
  const std::unique_ptr<Env> env = MakeLatency({}).value();
  for (const double odd : {-1e308, -0.5, 1e308}) {
    const double state[] = {odd, odd, odd};
    env->LoadState(state);
    const float action = 0;
    float reward = 0;
    EXPECT_FALSE(env->Step(&action, &reward));
  }
}

TEST(Latency, TheDataDoNotDependOnTheTimes) {
  std::vector<double> states[2];
  for (int i = 0; i < 2; ++i) {
    VectorEnv::Options options = {.env_id = "Latency-v0", .size = 2};
    if (i == 1) options.env.latency = {.step_ms = 0.001, .distribution = Distribution::kPareto, .slow_envs = 1};
    const std::unique_ptr<VectorEnv> env = VectorEnv::Make(options).value();
    env->ResetAll(0);
    const float action[] = {0.1f, -0.2f};
    for (int t = 0; t < 10; ++t) env->Step(action);
    states[i].resize(2 * env->state_size());
    env->SaveState(states[i].data());
  }
  EXPECT_EQ(states[0], states[1]);
}

TEST(Latency, EnvironmentsSleepOneAfterTheOtherAndTheFirstOnesLonger) {
  VectorEnv::Options options = {.env_id = "Latency-v0", .size = 2};
  options.env.latency = {.step_ms = 0.2, .slow_envs = 5, .slow_factor = 4};
  const std::unique_ptr<VectorEnv> env = VectorEnv::Make(options).value();
  env->ResetAll(4);  // Environments 4, a slow one, and 5.
  const float action[] = {0, 0};
  const absl::Duration start = MonotonicNow();
  env->Step(action);
  EXPECT_GE(MonotonicNow() - start, absl::Microseconds(1000));  // 4 * 0.2 + 0.2 ms
}

}  // namespace
}  // namespace skein
