// SPDX-License-Identifier: Apache-2.0
// What all MuJoCo tasks have in common. (mujoco_golden_test.cc compares them with Gymnasium.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "env/mujoco/mujoco_env.h"
#include "env/registry.h"
#include "env/vector_env.h"
#include "tests/env/ant_reward.h"
#include "tests/env/golden_actions.h"
#include "tests/env/mujoco_warnings.h"

namespace skein {
namespace {

class MujocoSuite : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Env> Make() const { return MakeEnv(GetParam()).value(); }
};

std::vector<double> State(const Env& env) {
  std::vector<double> state(env.spec().state_size);
  env.SaveState(state.data());
  return state;
}

// Taken over in the middle of an episode, by an instance with a past of its own, at each step.
TEST_P(MujocoSuite, ContinuesBitForBitInAnotherInstance) {
  const std::unique_ptr<Env> whole = Make(), resumed = Make();
  const EnvSpec& spec = whole->spec();
  RandomStream reset(1, RandomPurpose::kEnvReset, 0, 0), other_reset(1, RandomPurpose::kEnvReset, 0, 1);
  whole->Reset(reset);
  resumed->Reset(other_reset);
  GoldenActions actions(1, spec.action_high[0]);
  float reward = 0;
  for (int t = 0; t < 30; ++t) resumed->Step(actions.Next(spec.action_size).data(), &reward);
  std::vector<float> obs(spec.obs_size), other_obs(spec.obs_size);
  for (int t = 0; t < 300; ++t) {
    resumed->LoadState(State(*whole).data());
    whole->Observe(obs.data());
    resumed->Observe(other_obs.data());
    ASSERT_EQ(obs, other_obs) << t;
    const std::vector<float> action = actions.Next(spec.action_size);
    float other_reward = 0;
    const bool terminated = whole->Step(action.data(), &reward);
    ASSERT_EQ(resumed->Step(action.data(), &other_reward), terminated) << t;
    ASSERT_EQ(reward, other_reward) << t;
    ASSERT_EQ(State(*whole), State(*resumed)) << t;
  }
}

// A thread steps all its environments in the same memory of MuJoCo.
TEST_P(MujocoSuite, IsTheSameWhateverElseItsThreadSteps) {
  const int size = Make()->spec().action_size;
  const float bound = Make()->spec().action_high[0];
  const auto play = [&](const std::function<void(int)>& between) {
    const std::unique_ptr<Env> env = Make();
    GoldenActions actions(1, bound);
    std::vector<std::vector<double>> states;
    for (int t = 0; t < 100; ++t) {
      RandomStream random(1, RandomPurpose::kEnvReset, 0, t);
      if (t % 60 == 0) env->Reset(random);
      between(t);
      float reward = 0;
      env->Step(actions.Next(size).data(), &reward);
      between(t);
      states.push_back(State(*env));
    }
    return states;
  };
  std::vector<std::vector<double>> alone;
  std::thread([&] { alone = play([](int) {}); }).join();

  const std::unique_ptr<Env> same = Make(), other = MakeEnv(GetParam() == "Ant-v5" ? "Hopper-v5" : "Ant-v5").value();
  RandomStream same_start(2, RandomPurpose::kEnvReset, 0, 0), other_start(2, RandomPurpose::kEnvReset, 0, 1);
  same->Reset(same_start);
  other->Reset(other_start);
  GoldenActions actions(2, bound);
  const auto mixed = play([&](int t) {
    float reward = 0;
    if (t % 3 == 0) other->Step(actions.Next(other->spec().action_size).data(), &reward);
    if (t == 40) {  // It comes apart, twice.
      std::vector<double> broken = State(*same);
      broken[1] = 1e12;
      same->LoadState(broken.data());
    }
    same->Step(actions.Next(size).data(), &reward);
    EXPECT_EQ(std::isfinite(reward), t != 40) << t;
    if (t == 40) {
      RandomStream again(2, RandomPurpose::kEnvReset, 0, 2);
      same->Reset(again);
    }
  });
  EXPECT_EQ(alone, mixed);
  ExpectMujocoWarnings(2);
}

TEST_P(MujocoSuite, StartsDifferAndAreHealthy) {
  const std::unique_ptr<Env> env = Make();
  std::vector<double> last;
  for (int episode = 0; episode < 50; ++episode) {
    RandomStream random(1, RandomPurpose::kEnvReset, 0, episode);
    env->Reset(random);
    ASSERT_NE(State(*env), last);
    last = State(*env);
    const std::vector<float> rest(env->spec().action_size);
    float reward = 0;
    ASSERT_FALSE(env->Step(rest.data(), &reward)) << episode;
    ASSERT_TRUE(std::isfinite(reward));
  }
}

TEST_P(MujocoSuite, RefusesAnArgumentThatItDoesNotHave) {
  // Of the eleven no task has both.
  for (const char* const name : {"reward_near_weight", "healthy_z_range"}) {
    EnvOptions options;
    options.mujoco.arguments[name] =
        std::string(name) == "healthy_z_range" ? MujocoArgument(std::array<double, 2>{0.1, 9}) : MujocoArgument(0.25);
    const absl::Status status = MakeEnv(GetParam(), options).status();
    if (status.ok()) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                testing::AllOf(testing::HasSubstr(std::string("env.mujoco.") + name), testing::HasSubstr(GetParam()),
                               testing::HasSubstr("frame_skip")));
    return;
  }
  FAIL() << "it accepts both";
}

INSTANTIATE_TEST_SUITE_P(Tasks, MujocoSuite, testing::ValuesIn(MujocoTaskIds()),
                         [](const auto& info) { return info.param.substr(0, info.param.find('-')); });

EnvSpec Spec(const std::string& id, std::map<std::string, MujocoArgument> arguments) {
  EnvOptions options;
  options.mujoco.arguments = std::move(arguments);
  const auto spec = FindEnvSpec(id, options);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : EnvSpec{};
}

TEST(MujocoArguments, ChangeTheObservation) {
  EXPECT_EQ(Spec("Ant-v5", {}).obs_size, 105);
  EXPECT_EQ(Spec("Ant-v5", {{"include_cfrc_ext_in_observation", false}}).obs_size, 27);
  EXPECT_EQ(Spec("Ant-v5", {{"exclude_current_positions_from_observation", false}}).obs_size, 107);
  EXPECT_EQ(Spec("Humanoid-v5", {}).obs_size, 348);
  EXPECT_EQ(Spec("HumanoidStandup-v5", {}).obs_size, 348);
  EXPECT_EQ(Spec("Humanoid-v5", {{"include_cinert_in_observation", false}}).obs_size, 348 - 130);
  EXPECT_EQ(Spec("Humanoid-v5", {{"include_cvel_in_observation", false}}).obs_size, 348 - 78);
  EXPECT_EQ(Spec("Humanoid-v5", {{"include_qfrc_actuator_in_observation", false}}).obs_size, 348 - 17);
  EXPECT_EQ(Spec("HalfCheetah-v5", {{"exclude_current_positions_from_observation", false}}).obs_size, 18);
  EXPECT_EQ(Spec("Swimmer-v5", {{"exclude_current_positions_from_observation", false}}).obs_size, 10);
}

TEST(MujocoArguments, ChangeRewardTerminationAndStepping) {
  const auto step = [](const std::string& id, std::map<std::string, MujocoArgument> arguments,
                       std::vector<float> action, float* reward) {
    EnvOptions options;
    options.mujoco.arguments = std::move(arguments);
    const std::unique_ptr<Env> env = MakeEnv(id, options).value();
    RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
    env->Reset(random);
    return env->Step(action.data(), reward);
  };
  float plain = 0, changed = 0;
  const std::vector<float> action = {1, -1, 0.5f, 0.25f, -0.5f, 1};
  EXPECT_FALSE(step("Walker2d-v5", {}, action, &plain));
  EXPECT_FALSE(step("Walker2d-v5", {{"healthy_reward", 3.0}}, action, &changed));
  EXPECT_NEAR(changed - plain, 2, 1e-6);
  step("Walker2d-v5", {{"ctrl_cost_weight", 0.0}}, action, &changed);
  EXPECT_NEAR(changed - plain, 1e-3 * 3.5625, 1e-6);  // Squares: 1, 1, 1/4, 1/16, 1/4, 1.
  EXPECT_TRUE(step("Walker2d-v5", {{"healthy_z_range", std::array<double, 2>{1.5, 2}}}, action, &changed));
  EXPECT_FALSE(step("Walker2d-v5",
                    {{"healthy_z_range", std::array<double, 2>{1.5, 2}}, {"terminate_when_unhealthy", false}}, action,
                    &changed));
  EXPECT_NEAR(changed - plain, -1, 1e-6);
  EnvOptions slow;
  slow.mujoco.arguments["frame_skip"] = 10.0;
  const std::unique_ptr<Env> env = MakeEnv("Hopper-v5", slow).value();
  RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
  env->Reset(random);
  env->Step(action.data(), &plain);
  EXPECT_DOUBLE_EQ(State(*env)[0], 0.02);  // Seconds: ten times 0.002.
}

TEST(MujocoArguments, MainBodyKnowsGymnasiumsNames) {
  const auto reward = [](const std::string& body) { return AntReward({}, body); };
  const std::vector<std::pair<std::string, std::string>> numbers = {
      {"torso", "1"},    {"front_left_leg", "2"}, {"aux_1", "3"},           {"front_right_leg", "5"}, {"aux_2", "6"},
      {"back_leg", "8"}, {"aux_3", "9"},          {"right_back_leg", "11"}, {"aux_4", "12"}};
  for (const auto& [name, number] : numbers) EXPECT_EQ(reward(name), reward(number)) << name;
  EXPECT_NE(reward("aux_1"), reward("aux_2"));
}

TEST(MujocoArguments, EndsOfARangeMayBeEqual) {
  const std::array<double, 2> nothing = {0, 0};
  EnvOptions options;
  options.mujoco.arguments["contact_force_range"] = nothing;
  const std::unique_ptr<Env> env = MakeEnv("Ant-v5", options).value();
  RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
  env->Reset(random);
  const std::vector<float> action(8, 1.0f);
  float reward = 0;
  for (int t = 0; t < 50; ++t) env->Step(action.data(), &reward);
  std::vector<float> obs(env->spec().obs_size), metrics(env->spec().episode_metrics.size());
  env->Observe(obs.data());
  env->EpisodeMetrics(metrics.data());
  EXPECT_THAT(std::vector<float>(obs.begin() + 27, obs.end()), testing::Each(0));
  EXPECT_EQ(metrics[2], 0);  // reward_contact
  EXPECT_EQ(Spec("Humanoid-v5", {{"contact_cost_range", nothing}}).obs_size, 348);
  EXPECT_EQ(Spec("HumanoidStandup-v5", {{"impact_cost_range", nothing}}).obs_size, 348);
}

// Gymnasium 1.2.1 takes it and does not look at it.
TEST(MujocoArguments, UphCostWeightIsWithoutEffect) {
  const auto reward = [](std::map<std::string, MujocoArgument> arguments) {
    EnvOptions options;
    options.mujoco.arguments = std::move(arguments);
    const std::unique_ptr<Env> env = MakeEnv("HumanoidStandup-v5", options).value();
    RandomStream random(1, RandomPurpose::kEnvReset, 0, 0);
    env->Reset(random);
    const std::vector<float> rest(env->spec().action_size);
    float reward = 0;
    env->Step(rest.data(), &reward);
    return reward;
  };
  EXPECT_EQ(reward({{"uph_cost_weight", 2.0}}), reward({}));
}

TEST(MujocoArguments, AreRefusedWhereTheyCannotBe) {
  const auto refused = [](const std::string& id, const std::string& name, MujocoArgument value) {
    EnvOptions options;
    options.mujoco.arguments[name] = std::move(value);
    const absl::Status status = FindEnvSpec(id, options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("env.mujoco." + name));
    return std::string(status.message());
  };
  refused("Walker2d-v5", "healthy_z_range", std::array<double, 2>{2, 1});
  const double none = std::numeric_limits<double>::quiet_NaN();  // As a list of one number is read.
  refused("Walker2d-v5", "healthy_z_range", std::array<double, 2>{none, none});
  refused("QuadrupedStand-v0", "height_range", std::array<double, 2>{0.5, 0.5});
  refused("Walker2d-v5", "reset_noise_scale", -1.0);
  refused("Walker2d-v5", "terminate_when_unhealthy", 1.0);
  EXPECT_THAT(refused("CartPole-v1", "healthy_reward", 1.0), testing::HasSubstr("not a MuJoCo environment"));
  EnvOptions options;
  options.mujoco.arguments["main_body"] = std::string("tail");
  EXPECT_THAT(std::string(MakeEnv("Ant-v5", options).status().message()), testing::HasSubstr("no body 'tail'"));
}

// The reward of an action beyond the bounds: by default as of the clipped action, else as Gymnasium has it.
TEST(MujocoArguments, ARewardBeyondAllNumbersCostsItsEpisodeAlone) {
  VectorEnv::Options options{.env_id = "HalfCheetah-v5"};
  options.env.mujoco.arguments["forward_reward_weight"] = 1e308;
  const auto env = VectorEnv::Make(options).value();
  env->ResetAll(0);
  const std::vector<float> action(6, 1.0f);
  const VectorEnv::StepResult result = env->Step(action.data());
  EXPECT_TRUE(env->failure().ok()) << env->failure();
  EXPECT_TRUE(result.diverged[0] && result.truncated[0]);
  EXPECT_EQ(result.episode_metrics[0], 0);  // The term itself is beyond its bound.
  EXPECT_EQ(env->episode(0), 1u);
}

TEST(MujocoEnvs, ScoreActionsBeyondTheirBounds) {
  const auto reward = [](bool clip, float action) {
    VectorEnv::Options options{.env_id = "Swimmer-v5"};
    options.env.mujoco.clip_actions = clip;
    const std::unique_ptr<VectorEnv> env = VectorEnv::Make(options).value();
    env->ResetAll(0);
    const std::vector<float> actions = {action, action};
    return env->Step(actions.data()).reward[0];
  };
  EXPECT_EQ(reward(true, 5), reward(true, 1));
  EXPECT_NEAR(reward(false, 1) - reward(false, 5), 1e-4 * 2 * (25 - 1), 1e-6);  // The motors clip the same.
}

}  // namespace
}  // namespace skein
