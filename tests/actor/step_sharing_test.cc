// SPDX-License-Identifier: Apache-2.0
#include "actor/step_sharing.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/process/clock.h"
#include "gtest/gtest.h"
#include "tests/env/batched_env.h"

namespace skein {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

bool Never() { return false; }

std::unique_ptr<VectorEnv> Pendulums(int size) {
  auto env = VectorEnv::Make({.env_id = "Pendulum-v1", .size = size}).value();
  env->ResetAll(0);
  return env;
}

// Steps `env` until `done` holds, or patience is at an end.
template <typename Done>
void StepUntil(VectorEnv* env, Done done) {
  const std::vector<float> action(env->size());
  for (const absl::Duration begin = MonotonicNow(); !done() && MonotonicNow() - begin < kPatience;) {
    env->Step(action.data());
  }
}

TEST(StepSharing, NobodyToHelp) {
  StepSharing sharing([] {});
  EXPECT_FALSE(sharing.Help(nullptr, Never));
  const auto env = Pendulums(2);
  { const StepSharing::Offer offer(&sharing, env.get()); }
  EXPECT_FALSE(sharing.Help(nullptr, Never));
  const auto single = Pendulums(1);
  const StepSharing::Offer offer(&sharing, single.get());
  EXPECT_FALSE(sharing.Help(nullptr, Never)) << "one environment is nothing to share";
}

TEST(StepSharing, ABatchIsNothingToShare) {
  KeepingBatch batch(4);
  std::vector<std::unique_ptr<Env>> envs;
  for (int i = 0; i < 4; ++i) envs.push_back(std::make_unique<BatchedEnv>(&batch));
  const auto env = VectorEnv::Wrap(std::move(envs), {}).value();
  EXPECT_EQ(env->size(), 4);
  StepSharing sharing([] { ADD_FAILURE() << "nobody is called"; });
  const StepSharing::Offer offer(&sharing, env.get());
  EXPECT_FALSE(sharing.wants_help());
  EXPECT_FALSE(sharing.Help(nullptr, Never)) << "a helper would sleep until the ticket ends";
}

TEST(StepSharing, SaysWhenItWantsHelp) {
  int calls = 0;
  StepSharing sharing([&calls] { ++calls; });
  EXPECT_FALSE(sharing.wants_help());
  const auto two = Pendulums(2), single = Pendulums(1);
  {
    const StepSharing::Offer none(&sharing, single.get());
    EXPECT_FALSE(sharing.wants_help());
    EXPECT_EQ(calls, 0);
    const StepSharing::Offer offer(&sharing, two.get());
    EXPECT_TRUE(sharing.wants_help());
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(sharing.Help(nullptr, [&sharing] {
      EXPECT_FALSE(sharing.wants_help()) << "two threads for two environments";
      EXPECT_FALSE(sharing.Help(nullptr, Never));
      return true;
    }));
    EXPECT_TRUE(sharing.wants_help());
    EXPECT_EQ(calls, 2);
  }
  EXPECT_FALSE(sharing.wants_help());
}

TEST(StepSharing, HelpersGoWhenTheOfferIsWithdrawn) {
  StepSharing sharing([] {});
  const auto env = Pendulums(4);
  EnvActivity activity;
  std::atomic<bool> helped{false};
  std::thread helper;
  {
    const StepSharing::Offer offer(&sharing, env.get());
    helper = std::thread([&] { helped = sharing.Help(&activity, Never).has_value(); });
    StepUntil(env.get(), [&] { return activity.Read().entries > 0; });
  }
  helper.join();
  EXPECT_TRUE(helped);
  EXPECT_GT(activity.Read().entries, 0u);
}

TEST(StepSharing, HelpersGoWhenTheyHaveWorkOfTheirOwn) {
  StepSharing sharing([] {});
  const auto env = Pendulums(4);
  const StepSharing::Offer offer(&sharing, env.get());
  std::atomic<bool> ticket{false}, gone{false};
  std::thread helper([&] {
    EXPECT_TRUE(sharing.Help(nullptr, [&] { return ticket.load(); }));
    gone = true;
  });
  ticket = true;
  StepUntil(env.get(), [&] { return gone.load(); });
  EXPECT_TRUE(gone);
  helper.join();
}

TEST(StepSharing, HelpGoesWhereThereIsLeastOfIt) {
  StepSharing sharing([] {});
  const std::unique_ptr<VectorEnv> envs[] = {Pendulums(4), Pendulums(4)};
  EnvActivity activities[2];
  std::vector<std::thread> helpers;
  {
    const StepSharing::Offer first(&sharing, envs[0].get()), second(&sharing, envs[1].get());
    for (EnvActivity& activity : activities) {
      helpers.emplace_back([&] { EXPECT_TRUE(sharing.Help(&activity, Never)); });
    }
    // The one of them that helps this environment is busy, and the other one is not: it is with the other.
    const auto busy = [&] { return int{activities[0].Read().entries > 0} + int{activities[1].Read().entries > 0}; };
    StepUntil(envs[0].get(), [&] { return busy() == 1; });
    EXPECT_EQ(busy(), 1);
    StepUntil(envs[1].get(), [&] { return busy() == 2; });
    EXPECT_EQ(busy(), 2);
  }
  for (std::thread& helper : helpers) helper.join();
}

// Offers that come and go while helpers look for them: none sleeps through a withdrawal.
TEST(StepSharing, ManyShortOffers) {
  StepSharing sharing([] {});
  const auto env = Pendulums(3);
  const auto alone = Pendulums(3);  // Takes the same steps without help.
  std::atomic<bool> over{false};
  std::atomic<int> helped{0};
  std::vector<std::thread> helpers;
  for (int i = 0; i < 2; ++i) {
    helpers.emplace_back([&] {
      while (!over) helped += sharing.Help(nullptr, [&] { return over.load(); }).has_value();
    });
  }
  const std::vector<float> action(3);
  bool same = true;
  for (int round = 0; round < 3000; ++round) {
    const StepSharing::Offer offer(&sharing, env.get());
    for (int t = 0; t <= round % 4; ++t) {
      const float* const got = env->Step(action.data()).reward;
      const float* const want = alone->Step(action.data()).reward;
      same = same && std::equal(got, got + 3, want);
    }
    if (round % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  over = true;
  for (std::thread& helper : helpers) helper.join();
  EXPECT_TRUE(same);
  EXPECT_GT(helped, 0);
  EXPECT_FALSE(sharing.wants_help());
}

}  // namespace
}  // namespace skein
