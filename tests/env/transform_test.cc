// SPDX-License-Identifier: Apache-2.0
#include "env/transform/transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>

#include "base/number/number_bounds.h"
#include "env/clip_action.h"
#include "env/registry.h"
#include "env/transform/columns.h"
#include "env/transform/transform_json.h"
#include "env/vector_env.h"
#include "tests/env/batched_env.h"
#include "tests/env/mujoco_warnings.h"

namespace skein {
namespace {

using Kind = TransformOptions::Kind;
using testing::ElementsAre;
using testing::HasSubstr;

TransformOptions Hide(std::vector<std::string> columns) {
  return {.setting = "env.hide", .kind = Kind::kHide, .columns = std::move(columns)};
}
TransformOptions Counted(Kind kind, int count) {
  return {.setting = "env.transforms[0]", .kind = kind, .count = count};
}
TransformOptions Plain(Kind kind) { return {.setting = "env.transforms[0]", .kind = kind}; }

EnvOptions With(std::vector<TransformOptions> transforms) {
  EnvOptions options;
  options.transforms = std::move(transforms);
  return options;
}

std::string Refusal(const std::string& id, const TransformOptions& transform) {
  const auto spec = FindEnvSpec(id, With({transform}));
  EXPECT_EQ(spec.status(), MakeEnv(id, With({transform})).status());
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(spec.status().message());
}

std::unique_ptr<VectorEnv> Make(const std::string& id, std::vector<TransformOptions> transforms, int size = 2) {
  VectorEnv::Options options;
  options.env_id = id;
  options.size = size;
  options.max_episode_steps = 0;
  options.env = With(std::move(transforms));
  auto env = VectorEnv::Make(options);
  EXPECT_TRUE(env.ok()) << env.status();
  return *std::move(env);
}

std::vector<float> Observed(const VectorEnv& env) {
  std::vector<float> obs(static_cast<size_t>(env.size()) * env.spec().num_agents * env.spec().obs_size);
  env.Observe(obs.data());
  return obs;
}

std::vector<float> RandomActions(const VectorEnv& env, RandomStream& random) {
  const int reals = env.spec().discrete ? 1 : env.spec().action_size;
  std::vector<float> action(static_cast<size_t>(env.size()) * env.spec().num_agents * reals);
  for (float& a : action) a = static_cast<float>(random.Uniform(-1.2, 1.2));
  return action;
}

TEST(HiddenColumns, AreNumbersRangesAndVelocities) {
  const EnvSpec spec = {.id = "X", .obs_size = 6, .velocity_columns = {1, 4}};
  EXPECT_THAT(KeptColumns(spec, {"3"}).value(), ElementsAre(0, 1, 2, 4, 5));
  EXPECT_THAT(KeptColumns(spec, {"0", "2-5"}).value(), ElementsAre(1));
  EXPECT_THAT(KeptColumns(spec, {"velocities", "0"}).value(), ElementsAre(2, 3, 5));
  const auto refusal = [&](std::vector<std::string> hidden) {
    return std::string(KeptColumns(spec, hidden).status().message());
  };
  for (const char* nonsense : {"", "x", "1-", "-1", "1-2-3", "3-2", "1.5", "99999999999"}) {
    EXPECT_THAT(refusal({nonsense}), HasSubstr("is neither a column such as 3, nor a range")) << nonsense;
  }
  EXPECT_THAT(refusal({"2-6"}), HasSubstr("'2-6' is not there: observations of X have the columns 0-5"));
  EXPECT_THAT(refusal({"2-4", "3"}), HasSubstr("'3' names column 3 again"));
  EXPECT_THAT(refusal({"0-5"}), HasSubstr("nothing is left to observe"));
  EXPECT_THAT(std::string(KeptColumns({.id = "X", .obs_size = 2}, {"velocities"}).status().message()),
              HasSubstr("'velocities' are not known of X; name columns"));
}

TEST(VelocityColumns, AreThoseOfGymnasium) {
  const auto velocities = [](const char* id) { return FindEnvSpec(id).value().velocity_columns; };
  const auto range = [](int first, int last) {
    std::vector<int> columns;
    for (int column = first; column <= last; ++column) columns.push_back(column);
    return columns;
  };
  EXPECT_THAT(velocities("CartPole-v1"), ElementsAre(1, 3));
  EXPECT_THAT(velocities("Pendulum-v1"), ElementsAre(2));
  EXPECT_THAT(velocities("MountainCarContinuous-v0"), ElementsAre(1));
  EXPECT_EQ(velocities("HalfCheetah-v5"), range(8, 16));
  EXPECT_EQ(velocities("Hopper-v5"), range(5, 10));
  EXPECT_EQ(velocities("Walker2d-v5"), range(8, 16));
  EXPECT_EQ(velocities("Swimmer-v5"), range(3, 7));
  EXPECT_EQ(velocities("Ant-v5"), range(13, 26));
  EXPECT_EQ(velocities("InvertedPendulum-v5"), range(2, 3));
  EXPECT_EQ(velocities("InvertedDoublePendulum-v5"), range(5, 7));
  EXPECT_EQ(velocities("Reacher-v5"), range(6, 7));
  EXPECT_EQ(velocities("Pusher-v5"), range(7, 13));
  EXPECT_THAT(velocities("UavNavigate-v0"), ElementsAre());
  for (const EnvInfo& info : ListEnvs()) {
    for (const int column : info.spec.velocity_columns) EXPECT_LT(column, info.spec.obs_size) << info.id;
  }
}

std::vector<float> GlobalStates(const VectorEnv& env) {
  std::vector<float> states(static_cast<size_t>(env.size()) * env.spec().global_state_size);
  env.GlobalState(states.data());
  return states;
}

// Of each environment its own state, then columns 1 and 3 of each agent, then what was column 0.
TEST(HiddenColumns, AreInTheGlobalStateWhereTheCriticSeesThem) {
  TransformOptions first = Hide({"1", "3"}), second = Hide({"0"});
  first.critic_sees_hidden = second.critic_sees_hidden = true;
  for (const char* id : {"CartPole-v1", "HalfCheetah-v5", "UavNavigate-v0"}) {
    const auto whole = Make(id, {}), shown = Make(id, {first, second});
    const size_t agents = whole->spec().num_agents, columns = whole->spec().obs_size;
    const size_t own = whole->spec().global_state_size;
    ASSERT_EQ(shown->spec().global_state_size, own + 3 * agents) << id;
    whole->ResetAll(3);
    shown->ResetAll(3);
    RandomStream random(1, RandomPurpose::kAction, 0, 0);
    int ended = 0;
    for (int t = 0; t < 80; ++t) {
      const auto want = [&](const std::vector<float>& states, const std::vector<float>& obs, size_t e) {
        std::vector<float> state(states.begin() + e * own, states.begin() + (e + 1) * own);
        for (size_t a = 0; a < agents; ++a) {
          for (const size_t column : {1, 3}) state.push_back(obs[(e * agents + a) * columns + column]);
        }
        for (size_t a = 0; a < agents; ++a) state.push_back(obs[(e * agents + a) * columns]);
        return state;
      };
      const auto row = [&](const std::vector<float>& states, size_t e) {
        const size_t size = shown->spec().global_state_size;
        return std::vector<float>(states.begin() + e * size, states.begin() + (e + 1) * size);
      };
      for (size_t e = 0; e < 2; ++e) {
        ASSERT_EQ(row(GlobalStates(*shown), e), want(GlobalStates(*whole), Observed(*whole), e))
            << id << ", step " << t;
      }
      const std::vector<float> action = RandomActions(*whole, random);
      const auto plain = whole->Step(action.data()), got = shown->Step(action.data());
      for (size_t e = 0; e < 2; ++e) {
        if (!plain.terminated[e] && !plain.truncated[e]) continue;
        ++ended;
        const std::vector<float> obs(plain.final_obs, plain.final_obs + 2 * agents * columns);
        const std::vector<float> states(plain.final_state, plain.final_state + 2 * own);
        const size_t size = shown->spec().global_state_size;
        ASSERT_EQ(row({got.final_state, got.final_state + 2 * size}, e), want(states, obs, e)) << id << ", step " << t;
      }
    }
    if (std::string(id) == "CartPole-v1") {
      EXPECT_GT(ended, 0);
    }
  }
}

TEST(HiddenColumns, AreAllThatIsMissing) {
  for (const char* id : {"CartPole-v1", "HalfCheetah-v5", "UavNavigate-v0"}) {
    const auto whole = Make(id, {}), hidden = Make(id, {Hide({"1", "3"})});
    ASSERT_EQ(hidden->spec().obs_size, whole->spec().obs_size - 2);
    EXPECT_EQ(hidden->state_size(), whole->state_size());
    whole->ResetAll(3);
    hidden->ResetAll(3);
    RandomStream random(1, RandomPurpose::kAction, 0, 0);
    for (int t = 0; t < 40; ++t) {
      std::vector<float> want;
      const std::vector<float> obs = Observed(*whole);
      for (size_t i = 0; i < obs.size(); ++i) {
        const size_t column = i % whole->spec().obs_size;
        if (column != 1 && column != 3) want.push_back(obs[i]);
      }
      ASSERT_EQ(Observed(*hidden), want) << id << ", step " << t;
      const std::vector<float> action = RandomActions(*whole, random);
      const float reward = *whole->Step(action.data()).reward;
      ASSERT_EQ(*hidden->Step(action.data()).reward, reward);
    }
  }
}

TEST(StackedObservations, AreTheLastOnesTheNewestLast) {
  constexpr int kCount = 3;
  for (const char* id : {"CartPole-v1", "UavNavigate-v0"}) {
    const auto whole = Make(id, {}, 1), stacked = Make(id, {Counted(Kind::kStack, kCount)}, 1);
    const size_t agents = whole->spec().num_agents, size = whole->spec().obs_size;
    ASSERT_EQ(stacked->spec().obs_size, kCount * whole->spec().obs_size);
    whole->ResetAll(0);
    stacked->ResetAll(0);
    RandomStream random(1, RandomPurpose::kAction, 0, 0);
    std::deque<std::vector<float>> last(kCount, Observed(*whole));
    for (int t = 0; t < 100; ++t) {
      std::vector<float> want;
      for (size_t agent = 0; agent < agents; ++agent) {
        for (const std::vector<float>& obs : last) {
          want.insert(want.end(), obs.begin() + agent * size, obs.begin() + (agent + 1) * size);
        }
      }
      ASSERT_EQ(Observed(*stacked), want) << id << ", step " << t;
      const std::vector<float> action = RandomActions(*whole, random);
      const auto done = whole->Step(action.data());
      const bool ended = *done.terminated || *done.truncated;
      stacked->Step(action.data());
      last.pop_front();
      last.push_back(Observed(*whole));
      if (ended) last.assign(kCount, Observed(*whole));  // The first one of the new episode.
    }
    EXPECT_TRUE(whole->episode(0) > 0 || whole->spec().id != "CartPole-v1");
  }
}

TEST(StackedObservations, BelongToTheSavedState) {
  const std::vector<TransformOptions> transforms = {Counted(Kind::kStack, 4), Hide({"0"})};
  const auto whole = Make("HalfCheetah-v5", transforms), resumed = Make("HalfCheetah-v5", transforms);
  ASSERT_TRUE(whole->spec().relocatable);
  EXPECT_EQ(whole->state_size(), Make("HalfCheetah-v5", {})->state_size() + 3 * 17);
  whole->ResetAll(4);
  RandomStream random(1, RandomPurpose::kAction, 0, 0);
  for (int t = 0; t < 7; ++t) whole->Step(RandomActions(*whole, random).data());
  std::vector<double> state(static_cast<size_t>(whole->size()) * whole->state_size());
  whole->SaveState(state.data());
  ASSERT_TRUE(resumed->LoadState(4, state.data()).ok());
  for (int t = 0; t < 7; ++t) {
    ASSERT_EQ(Observed(*whole), Observed(*resumed)) << t;
    const std::vector<float> action = RandomActions(*whole, random);
    whole->Step(action.data());
    resumed->Step(action.data());
  }
  state.back() = 1e300;  // No float, and no observation either: the next episode begins.
  ASSERT_TRUE(resumed->LoadState(4, state.data()).ok());
  EXPECT_EQ(resumed->step(1), 0u);
  EXPECT_GT(resumed->step(0), 0u);
}

TEST(TransformedActions, AreScaledToTheBounds) {
  const auto plain = Make("Pendulum-v1", {}, 1), scaled = Make("Pendulum-v1", {Plain(Kind::kScale)}, 1);
  EXPECT_THAT(scaled->spec().action_low, ElementsAre(-1));
  EXPECT_THAT(scaled->spec().action_high, ElementsAre(1));
  plain->ResetAll(0);
  scaled->ResetAll(0);
  for (const float action : {0.5f, -1.0f, 1.0f, 3.0f}) {
    const float torque = 2 * action;  // Of [-2, 2]; what is beyond is clipped in both.
    plain->Step(&torque);
    scaled->Step(&action);
    ASSERT_EQ(Observed(*plain), Observed(*scaled));
  }
}

TEST(TransformedActions, AreSquashedIntoTheBounds) {
  const auto plain = Make("Pendulum-v1", {}, 1), squashed = Make("Pendulum-v1", {Plain(Kind::kSquash)}, 1);
  EXPECT_THAT(squashed->spec().action_low, ElementsAre(-10));
  EXPECT_THAT(squashed->spec().action_high, ElementsAre(10));
  plain->ResetAll(0);
  squashed->ResetAll(0);
  for (const float action : {0.5f, -1.0f, 0.0f, 3.0f, -10.0f, 99.0f}) {
    const float unit = std::tanh(double{action}), torque = -2 + (unit + 1) * 0.5f * 4;  // Of [-2, 2].
    plain->Step(&torque);
    squashed->Step(&action);
    ASSERT_EQ(Observed(*plain), Observed(*squashed)) << action;
  }
}

TEST(TransformedActions, AreTheSameOnTheirOwn) {
  const auto transforms =
      FindTransforms("Pendulum-v1", With({Plain(Kind::kScale), Counted(Kind::kStack, 2), Plain(Kind::kSquash)}));
  ASSERT_TRUE(transforms.ok()) << transforms.status();
  float action = 0.5f;
  TransformAction(*transforms, &action);
  EXPECT_FLOAT_EQ(action, 2 * std::tanh(0.5f));
  action = 7;
  TransformAction({}, &action);
  EXPECT_EQ(action, 7);
}

// Where VectorEnv is told not to clip, the cost of control is of the action as it is.
TEST(TransformedActions, AreClippedForTheReward) {
  EnvOptions options;
  options.mujoco.clip_actions = false;
  const auto unclipped = MakeEnv("HalfCheetah-v5", options).value();
  options.transforms = {Plain(Kind::kClip)};
  const auto clipped = MakeEnv("HalfCheetah-v5", options).value();
  RandomStream random(1, RandomPurpose::kEnvReset, 0, 0), same = random;
  unclipped->Reset(random);
  clipped->Reset(same);
  const std::vector<float> three(6, 3.0f), nan(6, std::numeric_limits<float>::quiet_NaN()), low(6, -1.0f);
  float reward = 0, with_clip = 0;
  unclipped->Step(three.data(), &reward);
  clipped->Step(three.data(), &with_clip);
  EXPECT_NEAR(with_clip - reward, 0.1 * 6 * (9 - 1), 1e-4);
  clipped->Step(nan.data(), &with_clip);
  EXPECT_TRUE(std::isfinite(with_clip));
}

TEST(TransformedRewards, AreScaledThenClippedInTheirOrder) {
  const TransformOptions scale = {.setting = "a", .kind = Kind::kRewardScale, .factor = 0.5};
  const TransformOptions clip = {.setting = "b", .kind = Kind::kRewardClip, .low = -1, .high = 0.75};
  float one = 1;
  const auto both = Make("CartPole-v1", {scale, clip}, 1), other = Make("CartPole-v1", {clip, scale}, 1);
  both->ResetAll(0);
  other->ResetAll(0);
  EXPECT_EQ(*both->Step(&one).reward, 0.5f);
  EXPECT_EQ(*other->Step(&one).reward, 0.375f);
  EXPECT_EQ(Make("CartPole-v1", {scale}, 1)->spec().reward_threshold, 475 / 2.0);
}

// An environment whose reward says that its simulation has diverged.
class Diverging final : public Env {
 public:
  const EnvSpec& spec() const override {
    static const EnvSpec spec = {.id = "Diverging", .obs_size = 1, .discrete = true, .action_size = 2, .state_size = 1};
    return spec;
  }
  void Reset(RandomStream&) override {}
  bool Step(const float*, float* reward) override {
    *reward = std::numeric_limits<float>::infinity();
    return false;
  }
  void Observe(float* obs) const override { *obs = 1; }
};

TEST(TransformedRewards, OfASimulationThatHasDivergedStaySo) {
  const TransformOptions clip = {.setting = "b", .kind = Kind::kRewardClip, .low = -1, .high = 1};
  std::vector<std::unique_ptr<Env>> envs;
  envs.push_back(std::make_unique<Diverging>());
  ASSERT_TRUE(WrapInTransforms({clip}, &envs).ok());
  float reward = 0, action = 0;
  envs[0]->Step(&action, &reward);
  EXPECT_TRUE(std::isinf(reward));
}

TEST(TimeLimit, IsTheSmallerOne) {
  EXPECT_EQ(Make("CartPole-v1", {Counted(Kind::kTimeLimit, 7)})->spec().max_episode_steps, 7);
  EXPECT_EQ(Make("CartPole-v1", {Counted(Kind::kTimeLimit, 7000)})->spec().max_episode_steps, 500);
}

TEST(TransformedActions, AreThoseOfABatchToo) {
  KeepingBatch batch(2);
  std::vector<std::unique_ptr<Env>> envs;
  for (int i = 0; i < 2; ++i) envs.push_back(std::make_unique<BatchedEnv>(&batch));
  ASSERT_TRUE(WrapInTransforms({Plain(Kind::kScale), Hide({})}, &envs).ok());
  ASSERT_EQ(envs[0]->batch(), envs[1]->batch());
  const float action[] = {-1, 0.5f};
  envs[0]->batch()->Step(action, nullptr);
  EXPECT_THAT(batch.got, ElementsAre(0, 7.5f));
}

TEST(Transforms, ThatDoNotFitAreRefusedByTheirSetting) {
  EXPECT_THAT(Refusal("CartPole-v1", Plain(Kind::kScale)),
              HasSubstr("env.transforms[0]: actions of CartPole-v1 are choices, which have no bounds"));
  EXPECT_THAT(Refusal("CartPole-v1", Plain(Kind::kSquash)), HasSubstr("which have no bounds"));
  EXPECT_THAT(Refusal("CartPole-v1", Plain(Kind::kClip)), HasSubstr("which have no bounds"));
  EXPECT_THAT(Refusal("Humanoid-v5", Counted(Kind::kStack, 4000)), HasSubstr("are more than 1048576 numbers"));
  EXPECT_THAT(Refusal("CartPole-v1", Hide({"9"})), HasSubstr("env.hide: '9' is not there"));
}

TEST(ClipAction, IsWithinTheBoundsWhateverItIs) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ClipAction(0.5f, -1, 2), 0.5f);
  EXPECT_EQ(ClipAction(kInf, -1, 2), 2);
  EXPECT_EQ(ClipAction(-kInf, -1, 2), -1);
  EXPECT_EQ(ClipAction(std::numeric_limits<float>::quiet_NaN(), -1, 2), -1);
}

TEST(Transforms, NeedBoundsToScaleTo) {
  EnvSpec spec = MakeEnv("Pendulum-v1").value()->spec();
  EXPECT_TRUE(ResolveTransforms(spec, {Plain(Kind::kScale)}).ok());
  for (const float bound : {kNumberBound, std::numeric_limits<float>::infinity()}) {
    spec.action_low = {-2};
    spec.action_high = {bound};
    for (const Kind kind : {Kind::kScale, Kind::kSquash}) {
      const absl::Status status = ResolveTransforms(spec, {Plain(kind)}).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(status.message()), HasSubstr("action 0 of Pendulum-v1 has no bounds to scale to"));
    }
    spec.action_low = {-bound};
    spec.action_high = {2};
    EXPECT_FALSE(ResolveTransforms(spec, {Plain(Kind::kScale)}).ok());
  }
}

TEST(Transforms, AreWrittenForOtherPlayers) {
  const TransformOptions scale = {.setting = "a", .kind = Kind::kRewardScale, .factor = 0.1};
  const auto transforms = FindTransforms(
      "Pendulum-v1",
      With({Hide({"velocities"}), Counted(Kind::kStack, 4), Plain(Kind::kScale), Counted(Kind::kTimeLimit, 9), scale}));
  EXPECT_EQ(TransformsJson(transforms.value()),
            "[{\"hide\": {\"keep\": [0, 1], \"of\": 3}}, {\"stack\": 4}, {\"scale\": {\"low\": [-2], \"high\": "
            "[2]}}, {\"time_limit\": 9}, {\"reward_scale\": 0.10000000000000001}]");
  EXPECT_EQ(TransformsJson(FindTransforms("Pendulum-v1", With({Plain(Kind::kSquash)})).value()),
            "[{\"squash\": {\"low\": [-2], \"high\": [2]}}]");
  EXPECT_EQ(TransformsJson({}), "[]");
}

}  // namespace
}  // namespace skein
