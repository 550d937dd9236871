// SPDX-License-Identifier: Apache-2.0
#include "actor/env_rebuilds.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "tests/actor/counting_env.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kPause = absl::Milliseconds(1);
const absl::Status& Failure() {
  static const absl::Status failure = absl::InternalError("environment 3: threw");
  return failure;
}

absl::StatusOr<std::unique_ptr<VectorEnv>> Good(uint32_t phase) {
  EXPECT_EQ(phase, 2u);
  return MakeCountingEnvs({}, 1);
}

double Failures(prometheus::Registry* registry) {
  for (const auto& family : registry->Collect()) {
    if (family.name == "skein_actor_env_failures_total") return family.metric.at(0).counter.value;
  }
  return -1;
}

TEST(EnvRebuilds, BuildsNewOnesAndCountsUntilTheLimit) {
  prometheus::Registry registry;
  ActorMetrics metrics(&registry, 1);
  EnvRebuilds rebuilds(2, Good, &metrics);
  ASSERT_TRUE(rebuilds.Build(2).ok());
  EXPECT_EQ(Failures(&registry), 0);
  EXPECT_TRUE(rebuilds.Rebuild(Failure(), 1, kPause, 2).ok());
  EXPECT_TRUE(rebuilds.Rebuild(Failure(), 1, kPause, 2).ok());
  const absl::Status third = rebuilds.Rebuild(Failure(), 1, kPause, 2).status();
  EXPECT_TRUE(absl::IsInternal(third));
  EXPECT_EQ(third.message(),
            "environments failed more than 2 times within 10m (rollout.env_rebuilds), the last time: environment 3: "
            "threw");
  EXPECT_EQ(Failures(&registry), 3);
}

TEST(EnvRebuilds, BuildsNoneWhereThatWouldNotHelp) {
  prometheus::Registry registry;
  ActorMetrics metrics(&registry, 1);
  EnvRebuilds rebuilds(2, Good, &metrics);
  const absl::Status hopeless = absl::FailedPreconditionError("environment 3: servers hung 3 times in a row");
  EXPECT_EQ(rebuilds.Rebuild(hopeless, 1, absl::InfiniteDuration(), 2).status(), hopeless);
  EXPECT_EQ(Failures(&registry), 1);
}

TEST(EnvRebuilds, OneTicketHasNoMoreOverAnyTime) {
  prometheus::Registry registry;
  ActorMetrics metrics(&registry, 1);
  EnvRebuilds rebuilds(2, Good, &metrics);
  EXPECT_TRUE(rebuilds.Rebuild(Failure(), 2, kPause, 2).ok());
  EXPECT_EQ(
      rebuilds.Rebuild(Failure(), 3, kPause, 2).status().message(),
      "environments failed 3 times in a row in one fragment, want at most 2 (rollout.env_rebuilds), the last time: "
      "environment 3: threw");
}

TEST(EnvRebuilds, WithoutAnyTheFirstFailureIsTheLast) {
  prometheus::Registry registry;
  ActorMetrics metrics(&registry, 1);
  EXPECT_TRUE(absl::IsInternal(EnvRebuilds(0, Good, &metrics).Rebuild(Failure(), 1, kPause, 2).status()));
}

TEST(EnvRebuilds, WhatFailsWhileItIsBuiltCountsLikewise) {
  prometheus::Registry registry;
  ActorMetrics metrics(&registry, 1);
  int calls = 0;
  EnvRebuilds rebuilds(
      3,
      [&calls](uint32_t) -> absl::StatusOr<std::unique_ptr<VectorEnv>> {
        if (++calls < 3) return absl::InternalError("no memory");
        return MakeCountingEnvs({}, 1);
      },
      &metrics);
  EXPECT_TRUE(rebuilds.Rebuild(Failure(), 1, kPause, 2).ok());
  EXPECT_EQ(Failures(&registry), 3);  // Its own and two while it was built.
  calls = 0;
  EXPECT_THAT(std::string(rebuilds.Rebuild(Failure(), 1, kPause, 2).status().message()),
              HasSubstr("more than 3 times"));
}

TEST(EnvRebuilds, NobodyWaitsAfterCancel) {
  prometheus::Registry registry;
  ActorMetrics metrics(&registry, 1);
  EnvRebuilds rebuilds(9, Good, &metrics);
  absl::Status status;
  std::thread waiting([&] { status = rebuilds.Rebuild(Failure(), 1, absl::Hours(1), 2).status(); });
  rebuilds.Cancel();
  waiting.join();
  EXPECT_TRUE(absl::IsCancelled(status));
}

}  // namespace
}  // namespace skein
