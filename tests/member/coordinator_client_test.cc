// SPDX-License-Identifier: Apache-2.0
#include "member/coordinator_client.h"

#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/member/fake_coordinator.h"
#include "tests/member/joined_client.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Everything on_membership was called with.
class MembershipLog {
 public:
  std::function<void(const CoordinatorClient::Membership&)> Callback() {
    return [this](const CoordinatorClient::Membership& membership) {
      absl::MutexLock lock(&mu_);
      seen_.push_back(membership);
    };
  }
  std::vector<CoordinatorClient::Membership> WaitFor(size_t calls) {
    absl::MutexLock lock(&mu_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return seen_.size() >= calls; };
    EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&enough), kPatience));
    return seen_;
  }

 private:
  absl::Mutex mu_;
  std::vector<CoordinatorClient::Membership> seen_ ABSL_GUARDED_BY(mu_);
};

TEST(CoordinatorClient, JoinsAndHeartbeatsWithItsReport) {
  FakeCoordinator coordinator;
  MembershipLog log;
  CoordinatorClient::Options options = OptionsFor(coordinator.address());
  options.fill_report = [](v1::HeartbeatRequest* request) { request->mutable_report()->set_env_steps(77); };
  options.on_membership = log.Callback();
  const auto client = JoinOrDie(options);
  EXPECT_EQ(client->config().seed(), 41u);
  EXPECT_EQ(client->membership().member_id, "actor-1");
  EXPECT_EQ(client->membership().generation, 1u);
  EXPECT_EQ(client->membership().run_id, "run-1");
  EXPECT_EQ(client->membership().learner_address, "127.0.0.1:7");
  EXPECT_EQ(log.WaitFor(1)[0].member_id, "actor-1");

  const auto state = coordinator.WaitUntil([](const auto& s) { return s.heartbeats.size() >= 3; });
  EXPECT_EQ(state.joins[0].protocol_major(), kProtocolMajor);
  EXPECT_EQ(state.joins[0].host(), "here");
  EXPECT_EQ(state.joins[0].run_id(), "");
  EXPECT_EQ(state.heartbeats[2].member_id(), "actor-1");
  EXPECT_EQ(state.heartbeats[2].generation(), 1u);
  EXPECT_EQ(state.heartbeats[2].report().env_steps(), 77u);
}

TEST(CoordinatorClient, AddressWithoutHostOrPortIsAnInvalidArgument) {
  for (const char* address : {"localhost", ":7070", "localhost:0"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CoordinatorClient::Join(OptionsFor(address)).status())) << address;
  }
}

TEST(CoordinatorClient, OfSeveralAddressesItUsesOneThatAnswers) {
  auto primary = std::make_unique<FakeCoordinator>();
  FakeCoordinator standby;
  // Nobody at the first; the second answers; then that goes, too.
  const auto client = JoinOrDie(OptionsFor(absl::StrCat("127.0.0.1:1,", primary->address(), ",", standby.address())));
  primary->WaitUntil([](const auto& s) { return s.heartbeats.size() >= 2; });
  primary.reset();
  const auto state = standby.WaitUntil([](const auto& s) { return s.heartbeats.size() >= 2; });
  EXPECT_TRUE(state.joins.empty());  // A standby knows whom the primary knew.
  EXPECT_EQ(state.heartbeats[1].member_id(), "actor-1");
  EXPECT_TRUE(client->ArriveAtBarrier("start", 1, kPatience).ok());
  EXPECT_TRUE(client->Leave().ok());
  standby.WaitUntil([](const auto& s) { return s.leaves.size() == 1; });
}

TEST(CoordinatorClient, LeavesAtAnAddressThatAnswers) {
  auto primary = std::make_unique<FakeCoordinator>();
  primary->Change([](auto* s) { s->heartbeat_seconds = 1000; });
  FakeCoordinator standby;
  const auto client = JoinOrDie(OptionsFor(absl::StrCat(primary->address(), ",", standby.address())));
  primary.reset();
  EXPECT_TRUE(client->Leave().ok());
  standby.WaitUntil([](const auto& s) { return s.leaves.size() == 1; });
}

TEST(CoordinatorClient, NobodyThereIsUnavailableAndSaysWhatToDo) {
  CoordinatorClient::Options options = OptionsFor("127.0.0.1:1");
  options.timeout = absl::Milliseconds(200);
  const absl::Status status = CoordinatorClient::Join(options).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(std::string(status.message()),
            "no coordinator answers at 127.0.0.1:1 (waited 200ms): connection refused; start one with `skein head` or "
            "check --address");
}

TEST(CoordinatorClient, WaitsForACoordinatorThatComesLater) {
  std::string address;
  {
    const FakeCoordinator gone;
    address = gone.address();
  }
  std::thread joiner([&] { EXPECT_NE(JoinOrDie(OptionsFor(address)), nullptr); });
  FakeCoordinator coordinator(address);
  coordinator.WaitUntil([](const auto& s) { return !s.joins.empty(); });
  joiner.join();
}

TEST(CoordinatorClient, TriesTheFirstJoinAgainWhileTheCoordinatorIsNotReady) {
  FakeCoordinator coordinator;
  coordinator.Change([](auto* s) {
    s->join_errors = {grpc::Status(grpc::StatusCode::UNAVAILABLE, "starting"),
                      grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "slow")};
  });
  const auto client = JoinOrDie(OptionsFor(coordinator.address()));
  EXPECT_EQ(coordinator.WaitUntil([](const auto&) { return true; }).joins.size(), 3u);
}

TEST(CoordinatorClient, RefusalsOfTheFirstJoinAreFinal) {
  for (const grpc::StatusCode code : {grpc::StatusCode::FAILED_PRECONDITION, grpc::StatusCode::ALREADY_EXISTS,
                                      grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::UNIMPLEMENTED}) {
    FakeCoordinator coordinator;
    coordinator.Change([&](auto* s) { s->join_errors = {grpc::Status(code, "protocol 2, want 1")}; });
    const absl::Status status = CoordinatorClient::Join(OptionsFor(coordinator.address())).status();
    EXPECT_EQ(static_cast<int>(status.code()), static_cast<int>(code));
    EXPECT_THAT(std::string(status.message()), HasSubstr(coordinator.address()));
    EXPECT_THAT(std::string(status.message()), HasSubstr("protocol 2, want 1"));
  }
}

TEST(CoordinatorClient, JoinsAgainWhenItHasBeenForgotten) {
  for (const grpc::StatusCode code : {grpc::StatusCode::NOT_FOUND, grpc::StatusCode::FAILED_PRECONDITION}) {
    FakeCoordinator coordinator;
    MembershipLog log;
    CoordinatorClient::Options options = OptionsFor(coordinator.address());
    options.on_membership = log.Callback();
    const auto client = JoinOrDie(options);
    coordinator.Change([&](auto* s) { s->heartbeat_errors = {grpc::Status(code, "lease is over")}; });
    EXPECT_EQ(log.WaitFor(2)[1].generation, 2u);
    EXPECT_EQ(client->membership().member_id, "actor-2");
    EXPECT_EQ(client->config().seed(), 41u);  // As of the first join.
    const auto state = coordinator.WaitUntil(
        [](const auto& s) { return !s.heartbeats.empty() && s.heartbeats.back().generation() == 2; });
    ASSERT_EQ(state.joins.size(), 2u);
    EXPECT_EQ(state.joins[1].run_id(), "run-1");
  }
}

TEST(CoordinatorClient, KeepsTryingWhileTheCoordinatorIsAway) {
  FakeCoordinator coordinator;
  const auto client = JoinOrDie(OptionsFor(coordinator.address()));
  coordinator.Change([](auto* s) {
    s->heartbeat_errors = {grpc::Status(grpc::StatusCode::UNAVAILABLE, "away"),
                           grpc::Status(grpc::StatusCode::NOT_FOUND, "restarted")};
    s->join_errors = {grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "the old lease lives")};
  });
  coordinator.WaitUntil([](const auto& s) { return !s.heartbeats.empty() && s.heartbeats.back().generation() == 1; });
  // away -> forgotten, join refused -> heartbeat goes on.
  coordinator.WaitUntil([](const auto& s) { return s.heartbeat_errors.empty() && s.join_errors.empty(); });
  const size_t before = coordinator.WaitUntil([](const auto&) { return true; }).heartbeats.size();
  coordinator.WaitUntil([&](const auto& s) { return s.heartbeats.size() > before; });
}

TEST(CoordinatorClient, ARejoinRefusedForGoodIsFatalAndEndsTheHeartbeats) {
  for (const grpc::StatusCode code : {grpc::StatusCode::FAILED_PRECONDITION, grpc::StatusCode::INVALID_ARGUMENT}) {
    FakeCoordinator coordinator;
    absl::Notification fatal;
    absl::Status why;
    CoordinatorClient::Options options = OptionsFor(coordinator.address());
    options.on_fatal = [&](const absl::Status& status) {
      why = status;
      fatal.Notify();
    };
    const auto client = JoinOrDie(options);
    coordinator.Change([&](auto* s) {
      s->heartbeat_errors = {grpc::Status(grpc::StatusCode::NOT_FOUND, "no such member")};
      s->join_errors = {grpc::Status(code, "it serves run B, this member belongs to run A")};
    });
    ASSERT_TRUE(fatal.WaitForNotificationWithTimeout(kPatience));
    EXPECT_EQ(static_cast<int>(why.code()), static_cast<int>(code));
    EXPECT_EQ(std::string(why.message()), absl::StrCat("the coordinator at ", coordinator.address(),
                                                       " refused: it serves run B, this member belongs to run A"));
    EXPECT_TRUE(client->Leave().ok());
    EXPECT_EQ(coordinator.WaitUntil([](const auto&) { return true; }).joins.size(), 2u);
  }
}

TEST(CoordinatorClient, CancellingEndsAJoinThatNobodyAnswers) {
  CoordinatorClient::Options options = OptionsFor("127.0.0.1:1");
  options.timeout = absl::InfiniteDuration();
  Cancellation cancel;
  options.cancel_join = &cancel;
  std::thread canceller([&] { cancel.Cancel(); });
  const absl::Status status = CoordinatorClient::Join(options).status();
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1:1"));
}

TEST(CoordinatorClient, CancellingEndsAJoinThatIsNotAnswered) {
  FakeCoordinator coordinator;
  coordinator.Change([](auto* s) { s->hold_joins = true; });
  CoordinatorClient::Options options = OptionsFor(coordinator.address());
  Cancellation cancel;
  options.cancel_join = &cancel;
  absl::Status status;
  std::thread joiner([&] { status = CoordinatorClient::Join(options).status(); });
  coordinator.WaitUntil([](const auto& s) { return !s.joins.empty(); });
  cancel.Cancel();
  joiner.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST(CoordinatorClient, CancellingAfterwardsDoesNothing) {
  FakeCoordinator coordinator;
  Cancellation cancel;
  CoordinatorClient::Options options = OptionsFor(coordinator.address());
  options.cancel_join = &cancel;
  const auto client = JoinOrDie(options);
  cancel.Cancel();
  const size_t before = coordinator.WaitUntil([](const auto&) { return true; }).heartbeats.size();
  coordinator.WaitUntil([&](const auto& s) { return s.heartbeats.size() > before + 1; });
}

TEST(CoordinatorClient, TellsWhenTheLearnerMoves) {
  FakeCoordinator coordinator;
  coordinator.Change([](auto* s) {
    s->learner_address = "";
    s->heartbeat_seconds = 3600;  // Does not matter while there is no learner.
  });
  MembershipLog log;
  CoordinatorClient::Options options = OptionsFor(coordinator.address());
  options.on_membership = log.Callback();
  const auto client = JoinOrDie(options);
  EXPECT_EQ(log.WaitFor(1)[0].learner_address, "");
  coordinator.Change([](auto* s) { s->learner_address = "10.0.0.1:9"; });
  EXPECT_EQ(log.WaitFor(2)[1].learner_address, "10.0.0.1:9");
  EXPECT_EQ(client->membership().learner_address, "10.0.0.1:9");
}

TEST(CoordinatorClient, TellsTheRunStateWhenItChanges) {
  FakeCoordinator coordinator;
  absl::Mutex mu;
  std::vector<v1::RunState> seen;
  CoordinatorClient::Options options = OptionsFor(coordinator.address());
  options.on_run_state = [&](v1::RunState state) {
    absl::MutexLock lock(&mu);
    seen.push_back(state);
  };
  const auto client = JoinOrDie(options);
  coordinator.WaitUntil([](const auto& s) { return s.heartbeats.size() >= 3; });
  coordinator.Change([](auto* s) { s->run_state = v1::RUN_STATE_TRAINING; });
  absl::MutexLock lock(&mu);
  const auto twice = [&] { return seen.size() >= 2; };
  ASSERT_TRUE(mu.AwaitWithTimeout(absl::Condition(&twice), kPatience));
  EXPECT_THAT(seen, ElementsAre(v1::RUN_STATE_STARTING, v1::RUN_STATE_TRAINING));
}

TEST(CoordinatorClient, TellsTheRoundTripOfEachHeartbeat) {
  FakeCoordinator coordinator;
  absl::Mutex mu;
  std::vector<absl::Duration> seen;
  CoordinatorClient::Options options = OptionsFor(coordinator.address());
  options.on_heartbeat = [&](absl::Duration round_trip) {
    absl::MutexLock lock(&mu);
    seen.push_back(round_trip);
  };
  const auto client = JoinOrDie(options);
  absl::MutexLock lock(&mu);
  const auto twice = [&] { return seen.size() >= 2; };
  ASSERT_TRUE(mu.AwaitWithTimeout(absl::Condition(&twice), kPatience));
  for (const absl::Duration round_trip : seen) EXPECT_GT(round_trip, absl::ZeroDuration());
}

TEST(CoordinatorClient, AsksForTheStatusOnlyWhileSomebodyWantsIt) {
  FakeCoordinator coordinator;
  absl::Mutex mu;
  int wanted = 2;
  std::vector<std::string> runs;
  CoordinatorClient::Options options = OptionsFor(coordinator.address());
  const absl::Duration begin = MonotonicNow();
  options.wants_status = [&] {
    absl::MutexLock lock(&mu);
    return wanted > 0;
  };
  options.on_status = [&](const v1::StatusResponse& status, absl::Duration asked) {
    absl::MutexLock lock(&mu);
    EXPECT_GE(asked, begin);
    EXPECT_LE(asked, MonotonicNow());
    --wanted;
    runs.push_back(status.run_id());
  };
  const auto client = JoinOrDie(options);
  const auto state = coordinator.WaitUntil([](const auto& s) { return s.heartbeats.size() >= 6; });
  EXPECT_EQ(state.statuses, 2);
  absl::MutexLock lock(&mu);
  EXPECT_THAT(runs, ElementsAre("run-1", "run-1"));
}

TEST(CoordinatorClient, AStatusThatDoesNotComeCostsNeitherTheLeaseNorTheConnection) {
  FakeCoordinator coordinator;
  coordinator.Change([](auto* state) {
    state->hold_statuses = true;
    state->lease_seconds = 0.4;
  });
  CoordinatorClient::Options options = OptionsFor(coordinator.address());
  options.wants_status = [] { return true; };
  options.on_status = [](const v1::StatusResponse&, absl::Duration) { ADD_FAILURE() << "there was none"; };
  const auto client = JoinOrDie(options);
  const auto state = coordinator.WaitUntil([](const auto& s) { return s.heartbeats.size() >= 3 && s.statuses >= 2; });
  EXPECT_LE(state.status_timeout, absl::Milliseconds(110));  // A quarter of the lease, as gRPC rounds it.
  EXPECT_EQ(state.heartbeats_from.size(), 1u);
}

TEST(CoordinatorClient, TellsOnceThatItIsToLeave) {
  FakeCoordinator coordinator;
  int asked = 0;
  absl::Notification drained;
  auto options = OptionsFor(coordinator.address());
  options.on_drain = [&] {
    if (++asked == 1) drained.Notify();
  };
  auto client = JoinOrDie(std::move(options));
  coordinator.Change([](FakeCoordinator::State* state) { state->drain = true; });
  ASSERT_TRUE(drained.WaitForNotificationWithTimeout(kPatience));
  const size_t beats = coordinator.WaitUntil([](const FakeCoordinator::State&) { return true; }).heartbeats.size();
  coordinator.WaitUntil([=](const FakeCoordinator::State& state) { return state.heartbeats.size() > beats + 3; });
  client.reset();
  EXPECT_EQ(asked, 1);
}

TEST(CoordinatorClient, LeavesOnceWithALastReport) {
  FakeCoordinator coordinator;
  CoordinatorClient::Options options = OptionsFor(coordinator.address());
  options.fill_report = [](v1::HeartbeatRequest* request) {
    request->mutable_report()->set_env_steps(5);
    request->mutable_progress()->set_state(v1::RUN_STATE_FINISHED);
  };
  const auto client = JoinOrDie(options);
  EXPECT_TRUE(client->Leave().ok());
  const size_t heartbeats = coordinator.WaitUntil([](const auto&) { return true; }).heartbeats.size();
  EXPECT_TRUE(client->Leave().ok());
  const auto state = coordinator.WaitUntil([](const auto&) { return true; });
  EXPECT_EQ(state.heartbeats.size(), heartbeats);
  ASSERT_EQ(state.leaves.size(), 1u);
  EXPECT_EQ(state.leaves[0].member_id(), "actor-1");
  EXPECT_EQ(state.leaves[0].generation(), 1u);
  EXPECT_EQ(state.leaves[0].report().env_steps(), 5u);
  EXPECT_EQ(state.leaves[0].progress().state(), v1::RUN_STATE_FINISHED);
}

TEST(CoordinatorClient, DestructionDoesNotWaitForAnAnswerAndDoesNotLeave) {
  FakeCoordinator coordinator;
  coordinator.Change([](auto* s) { s->hold_heartbeats = true; });
  auto client = JoinOrDie(OptionsFor(coordinator.address()));
  coordinator.WaitUntil([](const auto& s) { return !s.heartbeats.empty(); });
  client.reset();  // The heartbeat is never answered: without cancelling this would take its 5 s deadline.
  EXPECT_TRUE(coordinator.WaitUntil([](const auto& s) { return s.hold_heartbeats; }).leaves.empty());
}

}  // namespace
}  // namespace skein
