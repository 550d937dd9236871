// SPDX-License-Identifier: Apache-2.0
// A member at barriers.
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/member/fake_coordinator.h"
#include "tests/member/joined_client.h"

namespace skein {
namespace {

using testing::ElementsAre;

TEST(CoordinatorClient, BarrierTellsWhoTookPart) {
  FakeCoordinator coordinator;
  const auto client = JoinOrDie(OptionsFor(coordinator.address()));
  EXPECT_THAT(client->ArriveAtBarrier("start", 3, absl::Seconds(9)).value(), ElementsAre("learner-1", "actor-1"));
  EXPECT_TRUE(client->ArriveAtBarrier("start", 4, absl::ZeroDuration()).ok());
  const auto state = coordinator.WaitUntil([](const auto&) { return true; });
  EXPECT_EQ(state.barriers[0].member_generation(), 1u);
  EXPECT_EQ(state.barriers[0].name(), "start");
  EXPECT_EQ(state.barriers[0].barrier_generation(), 3u);
  EXPECT_NEAR(state.barriers[0].timeout_seconds(), 9, 1);
  EXPECT_NEAR(state.barriers[1].timeout_seconds(), 7, 1);  // The run's default.
}

TEST(CoordinatorClient, BarrierCarriesNumberAndPayloads) {
  FakeCoordinator coordinator;
  const auto client = JoinOrDie(OptionsFor(coordinator.address()));
  const std::string bytes("\0\xff mine", 7);
  const auto result = client->ArriveAtBarrier(
      {.name = "rendezvous", .generation = 1, .timeout = kPatience, .participants = 2, .payload = bytes});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->members, ElementsAre("learner-1", "actor-1"));
  EXPECT_THAT(result->payloads, ElementsAre("from learner-1", bytes));
  const auto state = coordinator.WaitUntil([](const auto&) { return true; });
  EXPECT_EQ(state.barriers[0].name(), "rendezvous");
  EXPECT_EQ(state.barriers[0].barrier_generation(), 1u);
  EXPECT_EQ(state.barriers[0].participants(), 2u);
  EXPECT_EQ(state.barriers[0].payload(), bytes);
}

TEST(CoordinatorClient, BarrierIsArrivedAtAgainWhenTheCoordinatorWasAway) {
  FakeCoordinator coordinator;
  coordinator.Change([](auto* s) { s->barrier_errors = {grpc::Status(grpc::StatusCode::UNAVAILABLE, "away")}; });
  const auto client = JoinOrDie(OptionsFor(coordinator.address()));
  EXPECT_TRUE(client->ArriveAtBarrier("start", 1, kPatience).ok());
}

TEST(CoordinatorClient, BarrierErrorsArePassedOn) {
  FakeCoordinator coordinator;
  coordinator.Change([](auto* s) {
    s->barrier_errors = {grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "absent: learner-2"),
                         grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "generation 1 has passed")};
  });
  const auto client = JoinOrDie(OptionsFor(coordinator.address()));
  const absl::Status late = client->ArriveAtBarrier("start", 1, kPatience).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late));
  EXPECT_EQ(late.message(), "absent: learner-2");
  EXPECT_TRUE(absl::IsFailedPrecondition(client->ArriveAtBarrier("start", 1, kPatience).status()));
}

TEST(CoordinatorClient, LeavingEndsAWaitAtABarrier) {
  FakeCoordinator coordinator;
  coordinator.Change([](auto* s) { s->hold_barriers = true; });
  const auto client = JoinOrDie(OptionsFor(coordinator.address()));
  std::thread waiter(
      [&] { EXPECT_TRUE(absl::IsCancelled(client->ArriveAtBarrier("start", 1, absl::Hours(1)).status())); });
  coordinator.WaitUntil([](const auto& s) { return !s.barriers.empty(); });
  EXPECT_TRUE(client->Leave().ok());
  waiter.join();
  EXPECT_TRUE(absl::IsCancelled(client->ArriveAtBarrier("start", 1, absl::Hours(1)).status()));
}

}  // namespace
}  // namespace skein
