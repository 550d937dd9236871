// SPDX-License-Identifier: Apache-2.0
// Environments that do what their contract forbids.
#include <functional>
#include <limits>
#include <stdexcept>

#include "base/number/number_bounds.h"
#include "env/hopeless_env.h"
#include "env/vector_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Counts its steps, and does wrong what a test wants.
struct Wrongs {
  int throws_at = -1, obs_nan_at = -1, state_nan_at = -1, saves_nan_at = -1;
  int obs_large_at = -1, reward_large_at = -1, state_large_at = -1;
  int obs_more = 0, rewards_more = 0;  // Numbers more than its spec says, from the second step on.
  bool throws_number = false, throws_hopeless = false;
};

class Wrong final : public Env {
 public:
  explicit Wrong(const Wrongs& wrongs) : wrongs_(wrongs) {}
  const EnvSpec& spec() const override {
    static const EnvSpec spec = {.id = "Wrong",
                                 .num_agents = 2,
                                 .obs_size = 2,
                                 .action_size = 1,
                                 .action_low = {-1},
                                 .action_high = {1},
                                 .global_state_size = 1,
                                 .state_size = 1};
    return spec;
  }
  void Reset(RandomStream&) override {
    count_ = 0;
    MayThrow();
  }
  bool Step(const float*, float* reward) override {
    ++count_;
    MayThrow();
    std::fill_n(reward, 2 + (count_ > 1 ? wrongs_.rewards_more : 0), 1.0f);
    if (count_ == wrongs_.reward_large_at) reward[1] = -2 * kNumberBound;
    return false;
  }
  void Observe(float* obs) const override {
    std::fill_n(obs, 4 + (count_ > 1 ? wrongs_.obs_more : 0), static_cast<float>(count_));
    if (count_ == wrongs_.obs_nan_at) obs[2] = kNan;
    if (count_ == wrongs_.obs_large_at) obs[3] = 2 * kNumberBound;
  }
  void GlobalState(float* state) const override {
    *state = count_ == wrongs_.state_nan_at ? kNan : count_ == wrongs_.state_large_at ? 2 * kNumberBound : 1;
  }
  void SaveState(double* state) const override {
    *state = count_ == wrongs_.saves_nan_at ? std::numeric_limits<double>::infinity() : count_;
  }
  void LoadState(const double* state) override {
    count_ = static_cast<int>(*state);
    MayThrow();
  }

 private:
  void MayThrow() const {
    if (count_ == wrongs_.throws_at && wrongs_.throws_number) throw 7;
    if (count_ == wrongs_.throws_at && wrongs_.throws_hopeless) {
      throw HopelessEnv(absl::StatusCode::kFailedPrecondition, "no map");
    }
    if (count_ == wrongs_.throws_at) throw std::runtime_error("out of joint");
  }
  const Wrongs wrongs_;
  int count_ = 0;
};

// Environments 10 and 11; the second does wrong.
std::unique_ptr<VectorEnv> Make(const Wrongs& wrongs) {
  std::vector<std::unique_ptr<Env>> envs;
  envs.push_back(std::make_unique<Wrong>(Wrongs()));
  envs.push_back(std::make_unique<Wrong>(wrongs));
  return VectorEnv::Wrap(std::move(envs), {}).value();
}

// The same after a reset and `steps` steps.
std::unique_ptr<VectorEnv> Stepped(const Wrongs& wrongs, int steps) {
  auto env = Make(wrongs);
  env->ResetAll(10);
  const float action[4] = {};
  for (int i = 0; i < steps; ++i) env->Step(action);
  return env;
}

std::string Failure(const VectorEnv& env) {
  EXPECT_TRUE(env.failure().ok() || absl::IsInternal(env.failure())) << env.failure();
  return std::string(env.failure().message());
}

TEST(VectorEnvFailure, GoodOnesHaveNone) { EXPECT_TRUE(Stepped({}, 9)->failure().ok()); }

TEST(VectorEnvFailure, WhatAStepThrowsIsNamedWithItsPlace) {
  EXPECT_TRUE(Stepped({.throws_at = 3}, 2)->failure().ok());
  EXPECT_EQ(Failure(*Stepped({.throws_at = 3}, 3)), "environment 11 of Wrong, episode 0, step 3: threw: out of joint");
  EXPECT_THAT(Failure(*Stepped({.throws_at = 1, .throws_number = true}, 1)), HasSubstr("no std::exception"));
  EXPECT_THAT(Failure(*Stepped({.throws_at = 0}, 0)), HasSubstr("step 0: threw: out of joint"));
}

TEST(VectorEnvFailure, OfAHopelessEnvironmentHasItsCode) {
  EXPECT_EQ(Stepped({.throws_at = 3, .throws_hopeless = true}, 3)->failure(),
            absl::FailedPreconditionError("environment 11 of Wrong, episode 0, step 3: no map"));
}

TEST(VectorEnvFailure, TheFirstOneStaysAndStepsDoNothing) {
  auto env = Stepped({.throws_at = 3}, 3);
  const std::string first = Failure(*env);
  const float action[4] = {};
  const VectorEnv::StepResult result = env->Step(action);
  EXPECT_EQ(Failure(*env), first);
  EXPECT_THAT(std::vector<float>(result.reward, result.reward + 4), Each(0));
  EXPECT_TRUE(result.truncated[0] && result.truncated[1]);
  EXPECT_FALSE(result.terminated[0] || result.terminated[1]);
  float obs[8];
  env->Observe(obs);
  EXPECT_THAT(std::vector<float>(obs + 4, obs + 8), Each(2));  // The last that it observed.
}

TEST(VectorEnvFailure, ObservationsThatMayDivergeEndTheEpisode) {
  std::vector<std::unique_ptr<Env>> envs;
  envs.push_back(std::make_unique<Wrong>(Wrongs{.obs_nan_at = 2, .state_nan_at = 2}));
  const auto env = VectorEnv::Wrap(std::move(envs), {.obs_may_diverge = true}).value();
  env->ResetAll(10);
  const float action[2] = {};
  EXPECT_FALSE(env->Step(action).truncated[0]);
  const VectorEnv::StepResult result = env->Step(action);
  EXPECT_TRUE(env->failure().ok()) << env->failure();
  EXPECT_TRUE(result.diverged[0] && result.truncated[0]);
  EXPECT_FALSE(result.terminated[0]);
  EXPECT_THAT(std::vector<float>(result.final_obs, result.final_obs + 4), Each(1));
  EXPECT_THAT(std::vector<float>(result.reward, result.reward + 2), Each(0));
  EXPECT_EQ(result.final_state[0], 0);
  EXPECT_EQ(result.episode_return[0], 2);
  EXPECT_EQ(env->episode(0), 1u);
}

TEST(VectorEnvFailure, AnObservationThatIsNotFinite) {
  EXPECT_THAT(Failure(*Stepped({.obs_nan_at = 2}, 2)), HasSubstr("step 2: observed a number that is not finite"));
  EXPECT_THAT(Failure(*Stepped({.obs_nan_at = 0}, 0)), HasSubstr("step 0: observed a number that is not finite"));
  auto env = Stepped({.obs_nan_at = 2}, 2);
  float obs[8];
  env->Observe(obs);
  EXPECT_THAT(obs, Each(testing::AllOf(testing::Ge(0), testing::Le(2))));
}

TEST(VectorEnvFailure, AFirstObservationBeyondItsBound) {
  EXPECT_THAT(Failure(*Stepped({.obs_large_at = 0}, 0)), HasSubstr("step 0: observed a number larger than 1e+06"));
}

TEST(VectorEnvFailure, ALaterObservationOrRewardBeyondItsBoundCutsTheEpisode) {
  for (const Wrongs& wrongs : {Wrongs{.obs_large_at = 2}, Wrongs{.reward_large_at = 2}}) {
    auto env = Stepped(wrongs, 1);
    const float action[4] = {};
    const VectorEnv::StepResult result = env->Step(action);
    EXPECT_TRUE(env->failure().ok()) << env->failure();
    EXPECT_FALSE(result.truncated[0] || result.terminated[0] || result.terminated[1]);
    EXPECT_TRUE(result.truncated[1]);
    EXPECT_THAT(std::vector<float>(result.reward + 2, result.reward + 4), Each(0));
    EXPECT_THAT(std::vector<float>(result.final_obs + 4, result.final_obs + 8), Each(1));  // From before the step.
    EXPECT_EQ(result.episode_return[1], 2);                                                // Of the first step.
    EXPECT_EQ(env->episode(1), 1u);
  }
}

TEST(VectorEnvFailure, AStateThatNobodySavedBeginsTheNextEpisode) {
  auto good = Stepped({}, 3);
  std::vector<double> state(2 * good->state_size());
  good->SaveState(state.data());
  state[good->state_size() + 2] = 1e300;  // The return so far of the second.
  for (const Wrongs& wrongs : {Wrongs{.obs_nan_at = 3}, Wrongs{.obs_large_at = 3}}) {
    auto env = Make(wrongs);
    EXPECT_TRUE(env->LoadState(10, state.data()).ok());
    EXPECT_EQ(env->step(0), 3u);
    EXPECT_EQ(env->episode(1), 1u);
    EXPECT_EQ(env->step(1), 0u);
    float obs[8];
    env->Observe(obs);
    EXPECT_THAT(std::vector<float>(obs + 4, obs + 8), Each(0));
  }
  // Without such an observation its return is told as far as it may be.
  auto env = Make({.reward_large_at = 4});
  ASSERT_TRUE(env->LoadState(10, state.data()).ok());
  const float action[4] = {};
  EXPECT_EQ(env->Step(action).episode_return[1], double{kEpisodeBound});
}

TEST(VectorEnvFailure, MoreOrFewerNumbersThanItsSpecSays) {
  EXPECT_THAT(Failure(*Stepped({.obs_more = 1}, 2)), HasSubstr("step 2: observed more numbers than its spec says"));
  EXPECT_THAT(Failure(*Stepped({.obs_more = 60}, 2)), HasSubstr("observed more numbers"));
  EXPECT_THAT(Failure(*Stepped({.obs_more = -1}, 2)), HasSubstr("observed fewer numbers"));
  EXPECT_THAT(Failure(*Stepped({.rewards_more = 1}, 2)), HasSubstr("rewarded more numbers"));
  EXPECT_THAT(Failure(*Stepped({.rewards_more = -1}, 2)), HasSubstr("rewarded fewer numbers"));
}

TEST(VectorEnvFailure, AGlobalStateThatIsNotFinite) {
  auto env = Stepped({.state_nan_at = 2}, 2);
  EXPECT_TRUE(env->failure().ok());
  float state[2];
  env->GlobalState(state);
  EXPECT_THAT(Failure(*env), HasSubstr("environment 11 of Wrong, episode 0, step 2: has a global state"));
  env = Stepped({.state_large_at = 2}, 2);
  EXPECT_TRUE(env->failure().ok());
  env->GlobalState(state);
  EXPECT_THAT(Failure(*env), HasSubstr("step 2: has a global state beyond 1e+06"));
}

TEST(VectorEnvFailure, ASavedStateThatIsNotFinite) {
  auto env = Stepped({.saves_nan_at = 2}, 2);
  std::vector<double> state(2 * env->state_size());
  env->SaveState(state.data());
  EXPECT_THAT(Failure(*env), HasSubstr("saved a number that is not finite"));
}

TEST(VectorEnvFailure, AStateThatItDoesNotTake) {
  auto good = Stepped({}, 3);
  std::vector<double> state(2 * good->state_size());
  good->SaveState(state.data());
  EXPECT_TRUE(Make({})->LoadState(10, state.data()).ok());
  auto env = Make({.throws_at = 3});
  EXPECT_EQ(env->LoadState(10, state.data()), env->failure());
  EXPECT_THAT(Failure(*env), HasSubstr("environment 11 of Wrong, episode 0, step 3: threw"));
}

TEST(VectorEnvFailure, EnvironmentsOfDifferentSizesAreRefused) {
  class Larger final : public Env {
   public:
    const EnvSpec& spec() const override {
      static const EnvSpec spec = {.id = "Larger", .num_agents = 2, .obs_size = 3, .action_size = 1};
      return spec;
    }
    void Reset(RandomStream&) override {}
    bool Step(const float*, float*) override { return false; }
    void Observe(float*) const override {}
    void SaveState(double*) const override {}
    void LoadState(const double*) override {}
  };
  std::vector<std::unique_ptr<Env>> envs;
  envs.push_back(std::make_unique<Wrong>(Wrongs()));
  envs.push_back(std::make_unique<Larger>());
  const absl::Status status = VectorEnv::Wrap(std::move(envs), {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("environment 1 of the group, Larger"));
}

TEST(EnvActivity, SaysWhichEnvironmentIsBeingCalled) {
  EnvActivity activity;
  EXPECT_FALSE(activity.Read().inside);
  auto env = Make({});
  env->SetActivity(&activity);
  env->ResetAll(10);
  const float action[4] = {};
  env->Step(action);
  env->Step(action);
  const EnvActivity::Place after = activity.Read();
  EXPECT_FALSE(after.inside);
  EXPECT_EQ(after.entries, 6u);  // Two environments, a reset and two steps each.
  EXPECT_EQ(after.env_index, 11u);
  EXPECT_EQ(after.step, 2u);
  activity.Enter(4, 5, 6);
  const EnvActivity::Place now = activity.Read();
  EXPECT_TRUE(now.inside);
  EXPECT_EQ(now.entries, 7u);
  EXPECT_EQ(now.env_index, 4u);
  EXPECT_EQ(now.episode, 5u);
  EXPECT_EQ(now.step, 6u);
}

// Steps with others, and remembers whether its calls were watched.
class Together final : public Env, public EnvBatch {
 public:
  explicit Together(const EnvActivity* activity) : activity_(activity) {}
  const EnvSpec& spec() const override {
    static const EnvSpec spec = {
        .id = "Together", .obs_size = 1, .action_size = 1, .action_low = {-1}, .action_high = {1}};
    return spec;
  }
  EnvBatch* batch() override { return this; }
  void Step(const float*, const uint32_t*) override { Look(); }
  void Reset(RandomStream&) override { Look(); }
  bool Step(const float*, float* reward) override {
    Look();
    *reward = 0;
    return ++steps_ == 2;
  }
  void Observe(float* obs) const override { *obs = 0; }

  bool watched = false;

 private:
  void Look() { watched = watched || activity_->Read().inside; }

  const EnvActivity* const activity_;
  int steps_ = 0;
};

// What steps together has a limit of its own, and pauses before it starts a server again: StepWatchdog must not see
// that as a step which hangs.
TEST(EnvActivity, DoesNotWatchWhatStepsTogether) {
  EnvActivity activity;
  std::vector<std::unique_ptr<Env>> envs;
  envs.push_back(std::make_unique<Together>(&activity));
  const auto* const together = static_cast<const Together*>(envs[0].get());
  auto env = VectorEnv::Wrap(std::move(envs), {}).value();
  env->SetActivity(&activity);
  env->ResetAll(0);
  const float action = 0;
  for (int step = 0; step < 3; ++step) env->Step(&action);  // The second ends an episode.
  EXPECT_FALSE(together->watched);
  EXPECT_EQ(activity.Read().entries, 0u);
}

}  // namespace
}  // namespace skein
