// SPDX-License-Identifier: Apache-2.0
#include "actor/limit_probe.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace skein {
namespace {

constexpr absl::Duration kShort = absl::Milliseconds(2);

VectorEnv::Options Options(const char* env_id) {
  VectorEnv::Options options;
  options.env_id = env_id;
  options.size = 2;
  return options;
}

TEST(LimitProbe, StepsAsManyThreadsAsThereAreRunners) {
  for (const char* env_id : {"CartPole-v1", "Pendulum-v1", "HalfCheetah-v5"}) {
    const auto limit = MeasureEnvLimit(Options(env_id), 2, kShort);
    ASSERT_TRUE(limit.ok()) << limit.status();
    EXPECT_GT(*limit, 0) << env_id;
  }
}

TEST(LimitProbe, AnEnvironmentThatSleepsHasNoLimit) {
  VectorEnv::Options options = Options("Latency-v0");
  options.env.latency.step_ms = 1e6;  // A step would take a quarter of an hour.
  EXPECT_EQ(MeasureEnvLimit(options, 2, kShort).value(), 0);
}

TEST(LimitProbe, SaysWhatVectorEnvSays) {
  const absl::Status want = VectorEnv::Make(Options("Nothing-v0")).status();
  EXPECT_FALSE(want.ok());
  EXPECT_EQ(MeasureEnvLimit(Options("Nothing-v0"), 1, kShort).status(), want);
}

TEST(LimitProbe, ChangesNothingInOtherEnvironments) {
  const auto play = [](bool probe) {
    auto env = VectorEnv::Make(Options("Pendulum-v1")).value();
    env->ResetAll(0);
    const std::vector<float> action{0.5f, -0.5f};
    for (int i = 0; i < 10; ++i) {
      if (probe && i == 5) MeasureEnvLimit(Options("Pendulum-v1"), 1, kShort).IgnoreError();
      env->Step(action.data());
    }
    std::vector<double> state(2 * static_cast<size_t>(env->state_size()));
    env->SaveState(state.data());
    return state;
  };
  EXPECT_EQ(play(true), play(false));
}

}  // namespace
}  // namespace skein
