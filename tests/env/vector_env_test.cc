// SPDX-License-Identifier: Apache-2.0
#include "env/vector_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "env/registry.h"

namespace skein {
namespace {

using testing::ElementsAre;

std::unique_ptr<VectorEnv> Make(const std::string& id, int size, int max_episode_steps = 0, uint64_t seed = 1) {
  return VectorEnv::Make({.env_id = id, .size = size, .seed = seed, .max_episode_steps = max_episode_steps}).value();
}

std::vector<float> Observe(const VectorEnv& env) {
  std::vector<float> obs(env.size() * env.spec().num_agents * env.spec().obs_size);
  env.Observe(obs.data());
  return obs;
}

// Two agents that count. obs of agent a: {count, a}; action [2, 2] is kept; the reward of agent a is its first action.
// Terminates when the count reaches `end`; comes apart at count `breaks`.
class Counter final : public Env {
 public:
  Counter(int end, int breaks) : end_(end), breaks_(breaks) {}
  const EnvSpec& spec() const override {
    static const EnvSpec spec = {.id = "Counter",
                                 .num_agents = 2,
                                 .obs_size = 2,
                                 .action_size = 2,
                                 .action_low = {-1, 0},
                                 .action_high = {1, 10},
                                 .global_state_size = 1,
                                 .state_size = 1,
                                 .max_episode_steps = 4};
    return spec;
  }
  void Reset(RandomStream&) override { count_ = 0; }
  bool Step(const float* action, float* reward) override {
    last_action.assign(action, action + 4);
    ++count_;
    reward[0] = count_ == breaks_ ? std::numeric_limits<float>::quiet_NaN() : action[0];
    reward[1] = action[2];
    return count_ == end_;
  }
  void Observe(float* obs) const override {
    obs[0] = obs[2] = static_cast<float>(count_);
    obs[1] = 0;
    obs[3] = 1;
  }
  void GlobalState(float* state) const override { *state = static_cast<float>(100 + count_); }
  void SaveState(double* state) const override { *state = count_; }
  void LoadState(const double* state) override { count_ = static_cast<int>(*state); }

  std::vector<float> last_action;

 private:
  int end_, breaks_, count_ = 0;
};

struct Counters {
  std::unique_ptr<VectorEnv> vector_env;
  std::vector<Counter*> envs;
};

Counters MakeCounters(const std::vector<int>& ends, const std::vector<int>& breaks, int max_episode_steps = 0) {
  Counters counters;
  std::vector<std::unique_ptr<Env>> envs;
  for (size_t e = 0; e < ends.size(); ++e) {
    auto env = std::make_unique<Counter>(ends[e], breaks[e]);
    counters.envs.push_back(env.get());
    envs.push_back(std::move(env));
  }
  counters.vector_env = VectorEnv::Wrap(std::move(envs), {.max_episode_steps = max_episode_steps}).value();
  counters.vector_env->ResetAll(0);
  return counters;
}

TEST(VectorEnv, RefusesWhatCannotBe) {
  EXPECT_EQ(VectorEnv::Make({.env_id = "CartPole-v1", .size = 0}).status().message(), "size: got 0, want at least 1");
  EXPECT_EQ(VectorEnv::Make({.env_id = "CartPole-v1", .max_episode_steps = -1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const absl::Status unknown = VectorEnv::Make({.env_id = "CartPool-v1"}).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), testing::HasSubstr("did you mean 'CartPole-v1'?"));
  EXPECT_EQ(VectorEnv::Wrap({}, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(VectorEnv, ClipsContinuousActionsAndTakesNanForTheLowerBound) {
  Counters c = MakeCounters({0}, {0});
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const float first[] = {-5, 11, 0.5, 3}, second[] = {nan, nan, inf, -inf};
  c.vector_env->Step(first);
  EXPECT_THAT(c.envs[0]->last_action, ElementsAre(-1, 10, 0.5, 3));
  c.vector_env->Step(second);
  EXPECT_THAT(c.envs[0]->last_action, ElementsAre(-1, 0, 1, 0));
}

TEST(VectorEnv, AnEpisodeThatTerminatesIsResetAndReportsItself) {
  Counters c = MakeCounters({2, 0}, {0, 0});  // The second ends by time, after 4 steps.
  const float action[] = {1, 0, 0.25, 0, 1, 0, 0.25, 0};
  VectorEnv::StepResult result = c.vector_env->Step(action);
  EXPECT_FALSE(result.terminated[0] || result.truncated[0]);
  EXPECT_THAT(std::vector<float>(result.reward, result.reward + 4), ElementsAre(1, 0.25, 1, 0.25));
  EXPECT_THAT(Observe(*c.vector_env), ElementsAre(1, 0, 1, 1, 1, 0, 1, 1));

  result = c.vector_env->Step(action);
  EXPECT_TRUE(result.terminated[0]);
  EXPECT_FALSE(result.truncated[0]);
  EXPECT_FALSE(result.terminated[1] || result.truncated[1]);
  EXPECT_THAT(std::vector<float>(result.final_obs, result.final_obs + 4), ElementsAre(2, 0, 2, 1));
  EXPECT_EQ(result.episode_return[0], 2.5);  // 2 steps * (1 + 0.25)
  EXPECT_EQ(result.episode_length[0], 2);
  EXPECT_THAT(Observe(*c.vector_env), ElementsAre(0, 0, 0, 1, 2, 0, 2, 1));
  EXPECT_EQ(c.vector_env->episode(0), 1u);
  EXPECT_EQ(c.vector_env->step(0), 0u);
  EXPECT_EQ(c.vector_env->episode(1), 0u);
  EXPECT_EQ(c.vector_env->step(1), 2u);
  float global_state[2];
  c.vector_env->GlobalState(global_state);
  EXPECT_THAT(global_state, ElementsAre(100, 102));
}

TEST(VectorEnv, ATimeLimitTruncatesAndNeverTerminates) {
  Counters c = MakeCounters({0}, {0}, 3);
  EXPECT_EQ(c.vector_env->spec().max_episode_steps, 3);
  const float action[] = {0, 0, 0, 0};
  for (int t = 1; t <= 7; ++t) {
    const VectorEnv::StepResult result = c.vector_env->Step(action);
    EXPECT_FALSE(result.terminated[0]);
    EXPECT_EQ(result.truncated[0], t % 3 == 0) << t;
    if (t % 3 == 0) {
      EXPECT_EQ(result.final_obs[0], 3);
      EXPECT_EQ(result.episode_length[0], 3);
    }
  }
}

TEST(VectorEnv, TerminatingOnTheLastAllowedStepIsNotTruncation) {
  Counters c = MakeCounters({3}, {0}, 3);
  const float action[] = {0, 0, 0, 0};
  c.vector_env->Step(action);
  c.vector_env->Step(action);
  const VectorEnv::StepResult result = c.vector_env->Step(action);
  EXPECT_TRUE(result.terminated[0]);
  EXPECT_FALSE(result.truncated[0]);
}

TEST(VectorEnv, ASimulationThatComesApartIsTruncatedWithTheLastFiniteObservation) {
  Counters c = MakeCounters({2}, {2});  // It would also terminate: what it says then is not believed.
  const float action[] = {1, 0, 1, 0};
  c.vector_env->Step(action);
  const VectorEnv::StepResult result = c.vector_env->Step(action);
  EXPECT_FALSE(result.terminated[0]);
  EXPECT_TRUE(result.truncated[0]);
  EXPECT_THAT(std::vector<float>(result.reward, result.reward + 2), ElementsAre(0, 0));
  EXPECT_THAT(std::vector<float>(result.final_obs, result.final_obs + 4), ElementsAre(1, 0, 1, 1));
  EXPECT_EQ(result.episode_return[0], 2);  // The first step's.
  EXPECT_EQ(result.episode_length[0], 2);
  EXPECT_THAT(Observe(*c.vector_env), ElementsAre(0, 0, 0, 1));
}

TEST(VectorEnv, DiscreteActionsOutOfRangeBecomeTheNearestChoice) {
  const std::unique_ptr<VectorEnv> odd = Make("CartPole-v1", 2), even = Make("CartPole-v1", 2);
  odd->ResetAll(0);
  even->ResetAll(0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float wild[] = {7, nan}, tame[] = {1, 0};
  odd->Step(wild);
  even->Step(tame);
  EXPECT_EQ(Observe(*odd), Observe(*even));
}

// The observations of environment 5 in `steps` steps, in whatever group it is.
std::vector<float> HistoryOfFive(const std::string& id, int first_env, int envs, int steps) {
  const std::unique_ptr<VectorEnv> env = Make(id, envs, 20);
  env->ResetAll(first_env);
  const int agents = env->spec().num_agents, size = agents * env->spec().obs_size;
  const int reals = agents * (env->spec().discrete ? 1 : env->spec().action_size);
  std::vector<float> history, action(envs * reals);
  std::vector<RandomStream> streams;
  for (int e = 0; e < envs; ++e) {
    EXPECT_EQ(env->env_index(e), static_cast<uint64_t>(first_env + e));
    streams.emplace_back(1, RandomPurpose::kAction, first_env + e, 0);
  }
  for (int t = 0; t < steps; ++t) {
    for (int e = 0; e < envs; ++e) {
      for (int i = 0; i < reals; ++i) action[e * reals + i] = static_cast<float>(streams[e].Uniform(-1, 2));
    }
    env->Step(action.data());
    const std::vector<float> obs = Observe(*env);
    const int row = 5 - first_env;
    history.insert(history.end(), obs.begin() + row * size, obs.begin() + (row + 1) * size);
  }
  return history;
}

TEST(VectorEnv, AnEnvironmentDoesNotDependOnTheGroupItIsSteppedIn) {
  for (const EnvInfo& info : ListEnvs()) {
    const std::vector<float> of_eight = HistoryOfFive(info.id, 0, 8, 50);
    EXPECT_EQ(of_eight, HistoryOfFive(info.id, 4, 2, 50)) << info.id;
    EXPECT_EQ(of_eight, HistoryOfFive(info.id, 5, 1, 50)) << info.id;
  }
}

TEST(VectorEnv, SeedsPurposesEnvironmentsAndEpisodesBeginDifferently) {
  const std::unique_ptr<VectorEnv> env = Make("Pendulum-v1", 2, 1);
  env->ResetAll(0);
  const std::vector<float> begin = Observe(*env);
  EXPECT_NE(begin[2], begin[5]);
  const float action[] = {0, 0};
  env->Step(action);  // Limit 1: episode 1 now.
  EXPECT_NE(Observe(*env)[2], begin[2]);
  env->ResetAll(0);
  EXPECT_EQ(Observe(*env), begin);

  const std::unique_ptr<VectorEnv> other_seed = Make("Pendulum-v1", 2, 1, 2);
  other_seed->ResetAll(0);
  EXPECT_NE(Observe(*other_seed), begin);
  const std::unique_ptr<VectorEnv> evaluation =
      VectorEnv::Make({.env_id = "Pendulum-v1", .size = 2, .reset_purpose = RandomPurpose::kEvaluation}).value();
  evaluation->ResetAll(0);
  EXPECT_NE(Observe(*evaluation), begin);
}

}  // namespace
}  // namespace skein
