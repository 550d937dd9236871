// SPDX-License-Identifier: Apache-2.0
#include "actor/rollout_builder.h"

#include <cstring>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/collect/admission.h"
#include "tests/actor/counting_env.h"
#include "tests/env/departing_team.h"
#include "tests/learner/sample_fragment.h"
#include "trajectory/env_spec_info.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kT = 5, kE = 2;

v1::Ticket MakeTicket() {
  v1::Ticket ticket;
  ticket.set_id(42);
  ticket.set_first_env(6);
  ticket.set_group_envs(kE);
  ticket.set_steps(kT);
  return ticket;
}

FragmentShape ShapeOf(const VectorEnv& env) {
  FragmentShape shape;
  shape.steps = kT;
  shape.group_envs = kE;
  shape.env_state_size = env.state_size();
  shape.spec = MakeEnvSpecInfo(env.spec());
  shape.algorithm_fields = AlgorithmFieldNames();
  return shape;
}

// Of a policy without a memory.
RolloutBuilder MakeBuilder(const VectorEnv& env) {
  return RolloutBuilder(env.spec(), /*policy_state_size=*/0, AlgorithmFieldNames());
}

// Runs the environment for one fragment with actions and log-probs that count up.
Fragment Build(RolloutBuilder* builder, VectorEnv* env) {
  const EnvSpec& spec = env->spec();
  const int rows = kE * spec.num_agents;
  std::vector<float> floats(rows * spec.action_size);
  builder->Begin(MakeTicket(), 9, env->state_size());
  env->Observe(builder->obs(0));
  if (spec.global_state_size > 0) env->GlobalState(builder->state(0));
  for (int t = 0; t < kT; ++t) {
    for (int i = 0; i < rows; ++i) builder->log_prob(t)[i] = static_cast<float>(100 * t + i);
    if (spec.discrete) {
      for (int i = 0; i < rows; ++i) builder->choice(t)[i] = (t + i) % spec.action_size;
    } else {
      for (size_t i = 0; i < floats.size(); ++i)
        builder->action(t)[i] = static_cast<float>(1000 * t) + static_cast<float>(i);
    }
    builder->Add(t, env->Step(floats.data()));
    env->Observe(builder->obs(t + 1));
    if (spec.global_state_size > 0) env->GlobalState(builder->state(t + 1));
  }
  env->SaveState(builder->env_state());
  v1::StageSeconds seconds;
  seconds.set_env_step(0.5);
  return builder->Finish(seconds);
}

TEST(RolloutBuilder, WhatItBuildsIsAdmittedAndHoldsWhatHappened) {
  for (const bool discrete : {false, true}) {
    for (const int agents : {1, 2}) {
      // Episodes of 2 steps end in a terminal state.
      const auto env =
          MakeCountingEnvs({.num_agents = agents, .action_size = 3, .discrete = discrete, .end = 2}, kE, 6);
      RolloutBuilder builder = MakeBuilder(*env);
      const Fragment fragment = Build(&builder, env.get());
      EXPECT_EQ(fragment.header.ticket_id(), 42u);
      EXPECT_EQ(fragment.header.policy_version(), 9u);
      EXPECT_EQ(fragment.header.first_env(), 6u);
      EXPECT_EQ(fragment.header.stage_seconds().env_step(), 0.5);
      const FragmentValues checked(fragment, ShapeOf(*env));
      for (int t = 0; t < kT; ++t) {
        for (int e = 0; e < kE; ++e) {
          EXPECT_EQ(checked.flags("terminated")[t * kE + e], t % 2);
          EXPECT_EQ(checked.flags("truncated")[t * kE + e], 0);
          for (int a = 0; a < agents; ++a) {
            const int row = (t * kE + e) * agents + a;
            EXPECT_EQ(checked.floats("obs")[2 * row], t % 2);  // After a terminal step the reset observation.
            EXPECT_EQ(checked.floats("obs")[2 * row + 1], a);
            EXPECT_EQ(checked.floats("reward")[row], 10 * (t % 2 + 1) + a);
            EXPECT_EQ(checked.floats("log_prob")[row], 100 * t + e * agents + a);
            if (discrete) {
              EXPECT_EQ(checked.ints("action")[row], (t + e * agents + a) % 3);
            } else {
              EXPECT_EQ(checked.floats("action")[3 * row + 2], 1000 * t + 3 * (e * agents + a) + 2);
            }
          }
        }
      }
      EXPECT_THAT(checked.floats("final_obs"), IsEmpty());
      // Steps 1 and 3 end both environments' episodes. Return: 10 + 20, and agent 1 adds 11 + 21.
      ASSERT_EQ(checked.floats("episode_return").size(), 4u);
      EXPECT_EQ(checked.floats("episode_return")[3], agents == 1 ? 30 : 62);
      EXPECT_EQ(checked.ints("episode_length")[3], 2);
      // State: episode 2, step 1, return 10 so far (and 11), count 1.
      const auto* state = reinterpret_cast<const double*>(checked.env_state().data().data());
      const std::vector<double> row(state, state + env->state_size());
      EXPECT_THAT(row, ElementsAre(2, 1, agents == 1 ? 10 : 21, 1));
    }
  }
}

TEST(RolloutBuilder, KeepsTheTrueLastObservationOfEachTruncatedEpisode) {
  // A time limit of 3: step 2 truncates both; the last observation is 3, the next row shows the reset one.
  const auto env = MakeCountingEnvs({.num_agents = 2}, kE, 6, 3);
  RolloutBuilder builder = MakeBuilder(*env);
  const Fragment fragment = Build(&builder, env.get());
  const FragmentValues checked(fragment, ShapeOf(*env));
  EXPECT_THAT(checked.floats("final_obs"), ElementsAre(3, 0, 3, 1, 3, 0, 3, 1));
  EXPECT_EQ(checked.flags("truncated")[2 * kE], 1);
  EXPECT_EQ(checked.floats("obs")[3 * kE * 2 * 2], 0);
}

TEST(RolloutBuilder, CountsEpisodesThatFailAndSaysNothingElseOfThem) {
  // Step 3 of each episode fails: of the five steps, the third truncates both episodes, with the observation before it.
  const auto env = MakeCountingEnvs({.breaks = 3}, kE, 6);
  RolloutBuilder builder = MakeBuilder(*env);
  const Fragment fragment = Build(&builder, env.get());
  EXPECT_EQ(fragment.header.failed_episodes(), 2u);
  EXPECT_EQ(fragment.header.episodes(), 0u);
  EXPECT_EQ(fragment.header.truncations(), 2u);
  const FragmentValues checked(fragment, ShapeOf(*env));
  EXPECT_EQ(checked.flags("truncated")[2 * kE], 1);
  EXPECT_THAT(checked.floats("final_obs"), ElementsAre(2, 0, 2, 0));
  EXPECT_THAT(checked.floats("episode_return"), IsEmpty());
  EXPECT_THAT(checked.ints("episode_length"), IsEmpty());
}

TEST(RolloutBuilder, TellsWhoWasAliveAndWhatATeamShares) {
  // Five steps. The first team loses agent 0 in every first step and ends with every second, the second lasts.
  const auto env = MakeDepartingTeams({{1, 2}, {9, 9}}, 4);
  RolloutBuilder builder = MakeBuilder(*env);
  const Fragment fragment = Build(&builder, env.get());
  const FragmentValues checked(fragment, ShapeOf(*env));
  EXPECT_THAT(checked.flags("active"), ElementsAre(1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(checked.flags("agent_terminated"),
              ElementsAre(1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0));
  // {count, -count} of both, before each step and after the last.
  EXPECT_THAT(checked.floats("state"),
              ElementsAre(0, 0, 0, 0, 1, -1, 1, -1, 0, 0, 2, -2, 1, -1, 3, -3, 0, 0, 0, 0, 1, -1, 1, -1));
  EXPECT_THAT(checked.floats("final_state"), ElementsAre(4, -4));  // The second team's, by the time limit.
  EXPECT_THAT(checked.floats("episode_metrics"), ElementsAre(2, 2, 4));
}

TEST(RolloutBuilder, BuildsOneFragmentAfterAnother) {
  const auto env = MakeCountingEnvs({.end = 2}, kE, 6);
  RolloutBuilder builder = MakeBuilder(*env);
  Build(&builder, env.get());
  env->ResetAll(6);
  const Fragment again = Build(&builder, env.get());
  env->ResetAll(6);
  RolloutBuilder fresh = MakeBuilder(*env);
  const Fragment first = Build(&fresh, env.get());
  EXPECT_EQ(first.header.SerializeAsString(), again.header.SerializeAsString());
  EXPECT_EQ(*first.block, *again.block);
}

TEST(RolloutBuilder, CarriesWhatThePolicyRemembersAndNotWhatTheAlgorithmDoesNotRead) {
  const auto env = MakeCountingEnvs({.num_agents = 2}, kE, 6);
  RolloutBuilder builder(env->spec(), /*policy_state_size=*/3, /*algorithm_fields=*/{});
  builder.Begin(MakeTicket(), 9, env->state_size());
  EXPECT_EQ(builder.log_prob(1), nullptr);
  const std::vector<float> action(kE * 2 * env->spec().action_size);
  for (int t = 0; t < kT; ++t) builder.Add(t, env->Step(action.data()));
  for (int i = 0; i < kE * 2 * 3; ++i) builder.policy_state()[i] = static_cast<float>(i);
  EXPECT_EQ(builder.values<float>("no_such_field"), nullptr);
  env->SaveState(builder.env_state());
  FragmentShape shape = ShapeOf(*env);
  shape.policy_state_size = 3;
  shape.algorithm_fields = {};
  const FragmentValues values(builder.Finish({}), shape);
  EXPECT_EQ(values.floats("policy_state").at(11), 11);  // 2 x 2 x 3 floats.
}

}  // namespace
}  // namespace skein
