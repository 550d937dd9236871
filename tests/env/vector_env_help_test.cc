// SPDX-License-Identifier: Apache-2.0
// Steps of one thread that others help with.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/number/philox.h"
#include "base/process/clock.h"
#include "env/registry.h"
#include "env/vector_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr int kE = 6, kSteps = 200;
constexpr absl::Duration kPatience = absl::Seconds(60);

// A walk that depends on its actions and on chance, ends at times, and takes its time. Throws in its `throws_at`-th
// step of all episodes together.
class Walk final : public Env {
 public:
  explicit Walk(int throws_at = -1) : throws_at_(throws_at) {}
  const EnvSpec& spec() const override {
    static const EnvSpec spec = {.id = "Walk",
                                 .obs_size = 2,
                                 .action_size = 1,
                                 .action_low = {-1},
                                 .action_high = {1},
                                 .state_size = 2,
                                 .max_episode_steps = 17};
    return spec;
  }
  void Reset(RandomStream& random) override {
    place_ = random.Uniform(-1, 1);
    speed_ = 0;
  }
  bool Step(const float* action, float* reward) override {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (++steps_ == throws_at_) throw std::runtime_error("stumbled");
    speed_ = 0.9 * speed_ + action[0];
    place_ += 0.1 * speed_;
    *reward = static_cast<float>(-place_ * place_);
    return place_ > 1.5;
  }
  void Observe(float* obs) const override {
    obs[0] = static_cast<float>(place_);
    obs[1] = static_cast<float>(speed_);
  }
  void SaveState(double* state) const override {
    state[0] = place_;
    state[1] = speed_;
  }
  void LoadState(const double* state) override {
    place_ = state[0];
    speed_ = state[1];
  }

 private:
  const int throws_at_;
  int steps_ = 0;
  double place_ = 0, speed_ = 0;
};

// The fourth of them throws at its `throws_at`-th step.
std::unique_ptr<VectorEnv> Walks(int throws_at = -1) {
  std::vector<std::unique_ptr<Env>> envs;
  for (int e = 0; e < kE; ++e) envs.push_back(std::make_unique<Walk>(e == 3 ? throws_at : -1));
  auto env = VectorEnv::Wrap(std::move(envs), {.seed = 5}).value();
  env->ResetAll(40);
  return env;
}

// All that a step says, in a row.
std::vector<double> StepOnce(VectorEnv* env, int t) {
  std::vector<float> action(kE);
  for (int e = 0; e < kE; ++e) action[e] = static_cast<float>((t * 7 + e * 3) % 11) / 5 - 1;
  const VectorEnv::StepResult result = env->Step(action.data());
  std::vector<double> all;
  for (int e = 0; e < kE; ++e) {
    all.insert(all.end(), {result.reward[e], double(result.terminated[e]), double(result.truncated[e]),
                           double(result.active[e]), double(result.agent_terminated[e]), double(env->step(e))});
    if (!result.terminated[e] && !result.truncated[e]) continue;
    all.insert(all.end(), {result.final_obs[2 * e], result.final_obs[2 * e + 1], result.episode_return[e],
                           double(result.episode_length[e])});
  }
  std::vector<float> obs(2 * kE);
  env->Observe(obs.data());
  all.insert(all.end(), obs.begin(), obs.end());
  return all;
}

// Threads that help with one VectorEnv until they are told to stop.
class Helpers {
 public:
  Helpers(VectorEnv* env, int threads) : env_(env), activities_(threads) {
    for (EnvActivity& activity : activities_) {
      threads_.emplace_back([this, &activity] { stepped_ns_ += absl::ToInt64Nanoseconds(Help(&activity)); });
    }
  }
  ~Helpers() { Stop(); }
  // By the thread that steps.
  void Stop() {
    stop_ = true;
    env_->WakeHelpers();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  absl::Duration stepped() const { return absl::Nanoseconds(stepped_ns_.load()); }
  uint64_t entries() const {
    uint64_t entries = 0;
    for (const EnvActivity& activity : activities_) entries += activity.Read().entries;
    return entries;
  }
  bool inside() const {
    return std::any_of(activities_.begin(), activities_.end(),
                       [](const EnvActivity& activity) { return activity.Read().inside; });
  }

 private:
  absl::Duration Help(EnvActivity* activity) {
    return env_->Help(activity, [this] { return stop_.load(); });
  }

  VectorEnv* const env_;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> stepped_ns_{0};
  std::vector<EnvActivity> activities_;
  std::vector<std::thread> threads_;
};

TEST(VectorEnvHelp, ResultsAreThoseOfOneThread) {
  const auto alone = Walks(), helped = Walks();
  EnvActivity own;
  helped->SetActivity(&own);
  Helpers helpers(helped.get(), 3);
  for (int t = 0; t < kSteps; ++t) ASSERT_EQ(StepOnce(helped.get(), t), StepOnce(alone.get(), t)) << "step " << t;
  for (const absl::Duration begin = MonotonicNow(); helpers.entries() == 0 && MonotonicNow() - begin < kPatience;) {
    StepOnce(helped.get(), 0);
  }
  helpers.Stop();
  EXPECT_GT(helpers.entries(), 0u) << "nobody helped";
  EXPECT_FALSE(helpers.inside());
  EXPECT_FALSE(own.Read().inside);
  EXPECT_GT(helpers.stepped(), absl::ZeroDuration());
  EXPECT_EQ(helped->TakeHelped(), helpers.stepped());
  EXPECT_EQ(helped->TakeHelped(), absl::ZeroDuration());
}

TEST(VectorEnvHelp, EveryEnvironmentGivesTheSameInSeveralHands) {
  for (const EnvInfo& info : ListEnvs()) {
    SCOPED_TRACE(info.id);
    const VectorEnv::Options options = {.env_id = info.id, .size = 4, .env = {.latency = {.step_ms = 0.2}}};
    const auto alone = VectorEnv::Make(options).value(), helped = VectorEnv::Make(options).value();
    for (const auto& env : {alone.get(), helped.get()}) env->ResetAll(0);
    Helpers helpers(helped.get(), 2);
    const size_t size = alone->size() * alone->state_size(), agents = 4 * alone->spec().num_agents;
    const size_t obs_size = agents * alone->spec().obs_size;
    std::vector<float> action(agents * (alone->spec().discrete ? 1 : alone->spec().action_size));
    std::vector<float> one_obs(obs_size), other_obs(obs_size);
    std::vector<double> one(size), other(size);
    for (int t = 0; t < 100; ++t) {
      RandomStream random(7, RandomPurpose::kAction, 0, t);
      for (float& number : action) number = static_cast<float>(random.Uniform(0, 2));
      const auto want = alone->Step(action.data()), got = helped->Step(action.data());
      ASSERT_TRUE(std::equal(want.reward, want.reward + agents, got.reward));
      alone->Observe(one_obs.data());
      helped->Observe(other_obs.data());
      ASSERT_EQ(one_obs, other_obs);
      alone->SaveState(one.data());
      helped->SaveState(other.data());
      ASSERT_EQ(one, other);
    }
  }
}

TEST(VectorEnvHelp, WhoHelpsStepsNothingBetweenSteps) {
  const auto env = Walks();
  Helpers helpers(env.get(), 2);
  std::vector<double> before(kE * env->state_size()), after = before;
  for (int t = 0; t < 50; ++t) {
    StepOnce(env.get(), t);
    env->SaveState(before.data());
    const uint64_t entries = helpers.entries();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    env->SaveState(after.data());
    ASSERT_EQ(before, after);
    ASSERT_EQ(helpers.entries(), entries);
  }
}

TEST(VectorEnvHelp, AnEnvironmentThatFailsInAnybodysHandsFailsTheGroup) {
  for (int round = 0; round < 20; ++round) {
    const auto env = Walks(/*throws_at=*/3);
    Helpers helpers(env.get(), 3);
    for (int t = 0; t < 5; ++t) {
      StepOnce(env.get(), t);
      EXPECT_EQ(env->failure().ok(), t < 2);
    }
    EXPECT_THAT(std::string(env->failure().message()), HasSubstr("environment 43 of Walk"));
    EXPECT_THAT(std::string(env->failure().message()), HasSubstr("stumbled"));
  }
}

}  // namespace
}  // namespace skein
