// SPDX-License-Identifier: Apache-2.0
#include "actor/direction_play.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/process/clock.h"
#include "env/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actor/working_runner.h"
#include "tests/learner/sample_fragment.h"

namespace skein {
namespace {

using testing::Each;

constexpr uint64_t kSeed = 5;
constexpr uint32_t kEpisodes = 3, kMostSteps = 40;

v1::Ticket MakeTicket(uint32_t first, uint32_t directions) {
  v1::Ticket ticket;
  ticket.set_id(8);
  ticket.set_policy_version(3);
  ticket.set_first_env(first);
  ticket.set_group_envs(directions);
  ticket.set_steps(1);
  ticket.mutable_directions()->set_noise_std(0.5);
  ticket.mutable_directions()->set_episodes(kEpisodes);
  ticket.mutable_directions()->set_episode_steps(kMostSteps);
  return ticket;
}

PolicySpec LinearPolicy(const EnvSpec& env) {
  v1::ModelConfig model;
  model.set_policy(v1::POLICY_KIND_LINEAR);
  return MakePolicySpec(model, env);
}

class Playing {
 public:
  explicit Playing(const std::string& env_id)
      : env_(VectorEnv::Make({.env_id = env_id, .size = 1, .seed = kSeed}).value()),
        policy_(RandomPolicy(3, LinearPolicy(env_->spec()))) {}

  Fragment Play(const v1::Ticket& ticket) { return play_.Play(ticket, *policy_, env_.get(), stop_).value().value(); }
  FragmentShape Shape(uint32_t directions) const {
    FragmentShape shape;
    shape.steps = 1;
    shape.group_envs = directions;
    shape.max_episode_steps = kMostSteps;
    shape.spec.set_num_agents(1);
    shape.spec.set_obs_size(env_->spec().obs_size);
    shape.direction_episodes = kEpisodes;
    shape.counts_observations = true;
    return shape;
  }
  const EnvSpec& spec() const { return env_->spec(); }
  const Policy& policy() const { return *policy_; }
  VectorEnv* env() { return env_.get(); }
  std::atomic<bool>& stop() { return stop_; }
  DirectionPlay& play() { return play_; }

 private:
  const std::unique_ptr<VectorEnv> env_;
  const std::shared_ptr<const Policy> policy_;
  std::atomic<bool> stop_{false};
  DirectionPlay play_{kSeed, /*counts_observations=*/true};
};

// One direction and sign, with environments of its own.
struct Oracle {
  double episode_return = 0;
  int64_t steps = 0;
  std::vector<std::vector<float>> observations;
};
Oracle PlaySlowly(const std::string& env_id, uint64_t direction, double scale) {
  Oracle oracle;
  for (uint32_t e = 0; e < kEpisodes; ++e) {
    const auto env = MakeEnv(env_id).value();
    const EnvSpec& spec = env->spec();
    std::vector<std::vector<float>> parameters = RandomParameters(LinearPolicy(spec));
    RandomStream noise(kSeed, RandomPurpose::kDirection, 2, direction);
    for (float& weight : parameters[0]) weight = static_cast<float>(weight + scale * noise.Normal());
    RandomStream start(kSeed, RandomPurpose::kEnvReset, direction * kEpisodes + e, 2);
    env->Reset(start);
    bool ended = false;
    for (uint32_t t = 0; t < kMostSteps && !ended; ++t) {
      std::vector<float> obs(spec.obs_size), head(spec.action_size);
      env->Observe(obs.data());
      oracle.observations.push_back(obs);
      for (int a = 0; a < spec.action_size; ++a) {
        head[a] = parameters[1][a];  // The bias.
        for (int o = 0; o < spec.obs_size; ++o) head[a] += parameters[0][a * spec.obs_size + o] * obs[o];
      }
      float action = spec.discrete ? (head[1] > head[0] ? 1.0f : 0.0f)
                                   : std::min(std::max(head[0], spec.action_low[0]), spec.action_high[0]);
      float reward = 0;
      ended = env->Step(&action, &reward);
      oracle.episode_return += reward;
      ++oracle.steps;
    }
  }
  return oracle;
}

TEST(DirectionPlay, EqualsTheLiteralOracle) {
  for (const std::string env_id : {"CartPole-v1", "Pendulum-v1"}) {
    Playing playing(env_id);
    const Fragment fragment = playing.Play(MakeTicket(10, 4));
    const FragmentValues values(fragment, playing.Shape(4));
    ExactMoments all(playing.spec().obs_size), got(playing.spec().obs_size);
    int64_t steps = 0;
    for (uint32_t d = 0; d < 4; ++d) {
      for (const bool plus : {true, false}) {
        const Oracle want = PlaySlowly(env_id, 10 + d, plus ? 0.5 : -0.5);
        const std::string sign = plus ? "plus" : "minus";
        EXPECT_EQ(values.ints("steps_" + sign)[d], want.steps);
        EXPECT_NEAR(values.values<double>("return_" + sign)[d], want.episode_return, 1e-2) << env_id;
        steps += want.steps;
        for (const auto& obs : want.observations) all.Add(obs.data());
      }
    }
    EXPECT_EQ(fragment.header.env_steps(), static_cast<uint64_t>(steps));
    got.AddWords(values.ints("obs_sum"), values.ints("obs_square_sum"));
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got.Mean(i, static_cast<double>(steps)), all.Mean(i, static_cast<double>(steps)), 1e-3);
    }
  }
}

// The same bytes of each direction, whatever order it is part of and whatever was played before.
TEST(DirectionPlay, ADirectionDoesNotDependOnItsOrder) {
  Playing playing("Pendulum-v1"), other("Pendulum-v1");
  const FragmentValues whole(playing.Play(MakeTicket(0, 6)), playing.Shape(6));
  ExactMoments sum(3), want(3);
  want.AddWords(whole.ints("obs_sum"), whole.ints("obs_square_sum"));
  for (const uint32_t first : {4u, 0u, 2u}) {
    const FragmentValues part(other.Play(MakeTicket(first, 2)), other.Shape(2));
    for (uint32_t d = 0; d < 2; ++d) {
      for (const std::string field : {"return_plus", "return_minus"}) {
        EXPECT_EQ(part.values<double>(field)[d], whole.values<double>(field)[first + d]);
      }
    }
    sum.AddWords(part.ints("obs_sum"), part.ints("obs_square_sum"));
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sum.Mean(i, 100), want.Mean(i, 100));
    EXPECT_EQ(sum.Variance(i, 100), want.Variance(i, 100));
  }
}

TEST(DirectionPlay, ADirectionCostsAtMost64Bytes) {
  Playing playing("Pendulum-v1");
  const auto bytes = [&](uint32_t directions) {
    const Fragment fragment = playing.Play(MakeTicket(0, directions));
    return FrameHead(fragment.header).size() + fragment.block->size();
  };
  EXPECT_LE((bytes(50) - bytes(10)) / 40, 64u);
}

// All of an answer but the statistics of observations, with what is added when it is sent.
TEST(DirectionPlay, AnAnswerOfEightDirectionsHasAtMost64BytesForEach) {
  Playing playing("Pendulum-v1");
  DirectionPlay play(kSeed, /*counts_observations=*/false);
  v1::Ticket ticket = MakeTicket(24, 8);
  ticket.set_id(100000);
  ticket.set_policy_version(10000);
  Fragment fragment = play.Play(ticket, playing.policy(), playing.env(), playing.stop()).value().value();
  v1::FragmentHeader& header = fragment.header;
  header.set_actor_id("actor-10");
  header.set_generation(1);
  header.set_sequence(100000);
  header.set_env_steps_collected(1000000000);
  header.mutable_stage_seconds()->set_wait(0.1);
  header.mutable_stage_seconds()->set_env_step(0.1);
  EXPECT_LE(FrameHead(header).size() + fragment.block->size(), 8 * 64u) << header.ShortDebugString();
}

// 4 directions x 2 signs x 3 episodes x 40 steps: the clock is read often enough to know.
TEST(DirectionPlay, SaysWhatThePolicyTook) {
  Playing playing("Pendulum-v1");
  const absl::Duration begin = MonotonicNow();
  const v1::StageSeconds seconds = playing.Play(MakeTicket(0, 4)).header.stage_seconds();
  EXPECT_GT(seconds.inference(), 0);
  EXPECT_LT(seconds.inference(), absl::ToDoubleSeconds(MonotonicNow() - begin));
  EXPECT_EQ(seconds.env_step(), 0);  // The runner's, who knows what the call took.
}

TEST(DirectionPlay, StopsWithinAnEpisode) {
  Playing playing("CartPole-v1");
  playing.stop() = true;
  const auto played = playing.play().Play(MakeTicket(0, 1), playing.policy(), playing.env(), playing.stop());
  ASSERT_TRUE(played.ok());
  EXPECT_FALSE(played->has_value());
}

TEST(DirectionPlay, RefusesAMalformedTicket) {
  Playing playing("CartPole-v1");
  v1::Ticket ticket = MakeTicket(0, 1);
  ticket.mutable_directions()->set_episodes(0);
  EXPECT_EQ(playing.play().Play(ticket, playing.policy(), playing.env(), playing.stop()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Ends in step 4 by itself: with a reward that is not finite, which ends an episode in VectorEnv and is a return of a
// direction that is dropped; or in order, with a reward of 0.
class Diverging : public Env {
 public:
  explicit Diverging(bool in_order = false) : in_order_(in_order) {
    spec_.id = "Diverging";
    spec_.obs_size = 1;
    spec_.action_size = 1;
    spec_.action_low = {-1};
    spec_.action_high = {1};
    spec_.max_episode_steps = 10;
  }
  const EnvSpec& spec() const override { return spec_; }
  void Reset(RandomStream&) override { step_ = 0; }
  bool Step(const float*, float* reward) override {
    reward[0] = ++step_ < 4 ? 1 : in_order_ ? 0 : NAN;
    return false;
  }
  bool truncated() const override { return in_order_ && step_ == 4; }
  void Observe(float* obs) const override { obs[0] = 0; }

 private:
  const bool in_order_;
  EnvSpec spec_;
  int step_ = 0;
};

// Observes 2, and diverges where an action is its greatest one: rewards or observes no number.
class Brittle : public Diverging {
 public:
  explicit Brittle(bool observes_it) : observes_it_(observes_it) {}
  void Reset(RandomStream&) override { broken_ = false; }
  bool Step(const float* action, float* reward) override {
    broken_ = broken_ || action[0] >= 1;
    reward[0] = broken_ && !observes_it_ ? NAN : 1;
    return false;
  }
  void Observe(float* obs) const override { obs[0] = broken_ && observes_it_ ? NAN : 2; }

 private:
  const bool observes_it_;
  bool broken_ = false;
};

void ExpectThatOnlyFiniteDirectionsCount(bool observes_it) {
  std::vector<std::unique_ptr<Env>> envs;
  envs.push_back(std::make_unique<Brittle>(observes_it));
  const auto env = VectorEnv::Wrap(std::move(envs), {.obs_may_diverge = true}).value();
  const auto policy = RandomPolicy(3, LinearPolicy(env->spec()), 1, /*bound=*/0);
  const std::atomic<bool> stop{false};
  DirectionPlay play(kSeed, true);
  const Fragment fragment = play.Play(MakeTicket(0, 16), *policy, env.get(), stop).value().value();
  const auto plus = Values<double>(fragment, "return_plus"), minus = Values<double>(fragment, "return_minus");
  int64_t steps = 0;
  for (size_t d = 0; d < 16; ++d) {
    if (!std::isfinite(plus[d]) || !std::isfinite(minus[d])) continue;
    steps += Values<int64_t>(fragment, "steps_plus")[d] + Values<int64_t>(fragment, "steps_minus")[d];
  }
  EXPECT_GT(steps, 0);
  EXPECT_LT(static_cast<uint64_t>(steps), fragment.header.env_steps());
  ExactMoments moments(1);
  moments.AddWords(Values<int64_t>(fragment, "obs_sum"), Values<int64_t>(fragment, "obs_square_sum"));
  EXPECT_EQ(moments.Mean(0, static_cast<double>(steps)), 2);
  EXPECT_EQ(moments.Variance(0, static_cast<double>(steps)), 0);
}

TEST(DirectionPlay, ObservationsOfADirectionThatDivergesDoNotCount) {
  ExpectThatOnlyFiniteDirectionsCount(/*observes_it=*/false);
}

TEST(DirectionPlay, AnObservationThatIsNotFiniteDropsItsDirection) {
  ExpectThatOnlyFiniteDirectionsCount(/*observes_it=*/true);
}

// An environment with a time limit of its own, such as those of other programs.
TEST(DirectionPlay, AnEpisodeThatTheEnvironmentTruncatesCounts) {
  std::vector<std::unique_ptr<Env>> envs;
  envs.push_back(std::make_unique<Diverging>(true));
  const auto env = VectorEnv::Wrap(std::move(envs), {}).value();
  const auto policy = RandomPolicy(3, LinearPolicy(env->spec()));
  const std::atomic<bool> stop{false};
  DirectionPlay play(kSeed, false);
  const Fragment fragment = play.Play(MakeTicket(0, 2), *policy, env.get(), stop).value().value();
  EXPECT_THAT(Values<double>(fragment, "return_plus"), Each(3.0 * kEpisodes));
  EXPECT_THAT(Values<int64_t>(fragment, "steps_plus"), Each(4 * kEpisodes));
}

TEST(DirectionPlay, ASimulationThatDivergesGivesNoNumber) {
  std::vector<std::unique_ptr<Env>> envs;
  envs.push_back(std::make_unique<Diverging>());
  const auto env = VectorEnv::Wrap(std::move(envs), {}).value();
  const auto policy = RandomPolicy(3, LinearPolicy(env->spec()));
  const std::atomic<bool> stop{false};
  DirectionPlay play(kSeed, false);
  v1::Ticket ticket = MakeTicket(0, 2);
  const Fragment fragment = play.Play(ticket, *policy, env.get(), stop).value().value();
  EXPECT_THAT(Values<double>(fragment, "return_plus"), Each(testing::IsNan()));
  EXPECT_THAT(Values<int64_t>(fragment, "steps_plus"), Each(4 * kEpisodes));
  // Where training ends episodes before that, all is well.
  ticket.mutable_directions()->set_episode_steps(3);
  EXPECT_THAT(Values<double>(play.Play(ticket, *policy, env.get(), stop).value().value(), "return_plus"),
              Each(3.0 * kEpisodes));
}

}  // namespace
}  // namespace skein
