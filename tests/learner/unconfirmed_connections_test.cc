// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/unconfirmed_connections.h"

#include <string>
#include <vector>

#include "base/process/clock.h"
#include "gmock/gmock.h"
#include "tests/learner/service_fixture.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr absl::Duration kLease = absl::Seconds(5);
constexpr absl::Duration kAsked = absl::Seconds(60);  // After all that said hello at kNow.
constexpr absl::Duration kNow = absl::Seconds(50);

// Of a coordinator that has been up for long enough to know.
v1::StatusResponse StatusOf(const std::vector<ConnectionId>& members) {
  v1::StatusResponse status;
  status.set_uptime_seconds(10);
  for (const ConnectionId& member : members) {
    v1::MemberStatus* one = status.add_members();
    one->set_role("actor");
    one->set_member_id(member.actor_id);
    one->set_generation(member.generation);
  }
  return status;
}

const ConnectionId kAda{"ada", 4}, kBob{"bob", 5}, kCora{"cora", 6};

v1::Hello HelloAfter(const ConnectionId& before, uint64_t env_steps_collected) {
  v1::Hello hello;
  hello.set_previous_actor_id(before.actor_id);
  hello.set_previous_generation(before.generation);
  hello.set_previous_env_steps_collected(env_steps_collected);
  return hello;
}

TEST(UnconfirmedConnections, AreJudgedOnceAndOnlyIfTheyHadComeBefore) {
  UnconfirmedConnections unconfirmed;
  EXPECT_TRUE(unconfirmed.empty());
  EXPECT_FALSE(unconfirmed.Greet(kAda, {}, false, kNow));
  unconfirmed.Greet(kBob, {}, false, kNow);
  unconfirmed.Greet(kCora, {}, false, kAsked);
  unconfirmed.Greet({"dora", 7}, {}, true, kNow);
  EXPECT_EQ(unconfirmed.size(), 3u);
  EXPECT_THAT(unconfirmed.Judge(StatusOf({kAda}), kAsked, kLease).strangers, ElementsAre(kBob));
  EXPECT_EQ(unconfirmed.size(), 1u);
  EXPECT_THAT(unconfirmed.Judge(StatusOf({}), 2 * kAsked, kLease).strangers, ElementsAre(kCora));
  EXPECT_TRUE(unconfirmed.empty());
}

TEST(UnconfirmedConnections, ACoordinatorThatHasJustStartedSaysNothingAboutThem) {
  UnconfirmedConnections unconfirmed;
  unconfirmed.Greet(kAda, {}, false, kNow);
  unconfirmed.Greet(kCora, HelloAfter(kBob, 8), false, kNow);
  v1::StatusResponse status = StatusOf({kCora});
  status.set_uptime_seconds(9.9);  // Two leases are 10 s.
  const UnconfirmedConnections::Verdict early = unconfirmed.Judge(status, kAsked, kLease);
  EXPECT_THAT(early.strangers, IsEmpty());
  EXPECT_THAT(early.ended, IsEmpty());
  EXPECT_EQ(unconfirmed.size(), 2u);
  status.set_uptime_seconds(10);
  const UnconfirmedConnections::Verdict verdict = unconfirmed.Judge(status, kAsked, kLease);
  EXPECT_THAT(verdict.strangers, ElementsAre(kAda));
  ASSERT_EQ(verdict.ended.size(), 1u);
  EXPECT_EQ(verdict.ended[0].connection, kBob);
  EXPECT_EQ(verdict.ended[0].env_steps_collected, 8u);
}

TEST(UnconfirmedConnections, AStayBeforeIsOverAtOnceAndAnotherMembersLifeIsNot) {
  UnconfirmedConnections unconfirmed;
  const ConnectionId before{"ada", 3, "hers"}, now{"ada", 4, "hers"};
  const auto ended = unconfirmed.Greet(now, HelloAfter(before, 8), false, kNow);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->connection, before);
  EXPECT_EQ(ended->env_steps_collected, 8u);
  EXPECT_FALSE(unconfirmed.Greet(kCora, HelloAfter(kBob, 8), false, kNow));
  // Bob is a member still.
  EXPECT_THAT(unconfirmed.Judge(StatusOf({{"ada", 3}, kBob, kCora}), kAsked, kLease).ended, IsEmpty());
}

TEST(UnconfirmedConnections, WhatAStrangerSaysOfAnotherLifeIsNotBelieved) {
  UnconfirmedConnections unconfirmed;
  unconfirmed.Greet(kCora, HelloAfter(kBob, 8), false, kNow);
  const UnconfirmedConnections::Verdict verdict = unconfirmed.Judge(StatusOf({kAda}), kAsked, kLease);
  EXPECT_THAT(verdict.strangers, ElementsAre(kCora));
  EXPECT_THAT(verdict.ended, IsEmpty());
}

TEST_F(LearnerServiceTest, WhoIsNoMemberIsSentAwayOnceTheCoordinatorHasSaidSo) {
  Serve();
  EXPECT_FALSE(service_.HasUnconfirmed());
  ScriptedActor ada(port_, "ada"), bob(port_, "bob"), cora(port_, "cora");
  cora.hello()->set_generation(3);
  ada.Join();
  bob.Join();
  cora.Join();
  EXPECT_TRUE(service_.HasUnconfirmed());
  service_.Confirm(StatusOf({}), MonotonicNow() - absl::Minutes(1));  // As it was before they came.
  EXPECT_EQ(collector_->actors(), 3);
  // Cora has left a learner twice, and counts each stay.
  service_.Confirm(StatusOf({{"ada", 1}, {"cora", 1}}), MonotonicNow());
  EXPECT_FALSE(service_.HasUnconfirmed());
  EXPECT_EQ(bob.End().error_code(), grpc::StatusCode::ABORTED);
  bob.Connect();
  bob.SendHello();
  EXPECT_EQ(bob.End().error_code(), grpc::StatusCode::ABORTED);
  // A lease that ends, or a coordinator that has lost its state, does not cost a member its stream.
  ada.Break();
  WaitUntil([&] { return collector_->actors() == 1; });
  ada.Connect();
  ada.Join();
  service_.Confirm(StatusOf({}), MonotonicNow());
  OpenIteration(1);
  ada.ReadTicket();
  cora.ReadTicket();
}

TEST_F(LearnerServiceTest, AGenerationBeforeTheMembersOrFarBeyondItIsNotItsOwn) {
  Serve();
  ScriptedActor before(port_, "ada"), after(port_, "ada");
  before.hello()->set_generation(6);
  after.hello()->set_generation(7 + (uint64_t{1} << 20));
  before.Join();
  after.Join();
  service_.Confirm(StatusOf({{"ada", 7}}), MonotonicNow());
  EXPECT_EQ(before.End().error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(after.End().error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(LearnerServiceTest, OnlyALifeThatIsNoMembersAnyMoreIsClosedByAnother) {
  Serve();
  OpenIteration(1);
  ScriptedActor ada(port_, "ada", 2);
  ada.Join();
  const v1::Ticket ticket = ada.ReadTicket();
  ada.ReadTicket();
  ScriptedActor mallory(port_, "mallory"), cora(port_, "cora");
  for (ScriptedActor* other : {&mallory, &cora}) {
    other->hello()->set_previous_actor_id("ada");
    other->hello()->set_previous_generation(1);
    other->hello()->set_previous_env_steps_collected(2 * kFragmentSteps);
  }
  mallory.Join();
  service_.Confirm(StatusOf({{"ada", 1}, {"mallory", 1}}), MonotonicNow());
  EXPECT_EQ(collector_->account().lost(), 0u);
  EXPECT_EQ(collector_->actors(), 2);
  ada.SendFragment(ticket);
  EXPECT_EQ(ada.ReadReceipt().result(), v1::RECEIPT_RESULT_ACCEPTED);
  // Ada's lease has ended, and it has joined again as cora.
  cora.Join();
  EXPECT_EQ(collector_->account().lost(), 0u);
  service_.Confirm(StatusOf({{"cora", 1}, {"mallory", 1}}), MonotonicNow());
  EXPECT_EQ(collector_->account().lost(), kFragmentSteps);  // Of the two that it had tickets for.
}

TEST_F(LearnerServiceTest, WhatAMemberSaysOfItsLifeBeforeCountsAlsoIfBothAreNew) {
  Serve();
  OpenIteration(1);
  ScriptedActor ada(port_, "ada", 2), cora(port_, "cora");
  ada.Join();
  ada.ReadTicket();
  ada.ReadTicket();
  cora.hello()->set_previous_actor_id("ada");
  cora.hello()->set_previous_generation(1);
  cora.hello()->set_previous_env_steps_collected(2 * kFragmentSteps);
  cora.Join();
  service_.Confirm(StatusOf({{"cora", 1}}), MonotonicNow());
  EXPECT_EQ(collector_->account().lost(), 2 * kFragmentSteps);
}

TEST_F(LearnerServiceTest, ANewStayOfAMemberClosesItsLastOneAtOnce) {
  Serve();
  OpenIteration(1);
  ScriptedActor before(port_, "ada"), now(port_, "ada");
  before.Join();
  before.ReadTicket();
  now.hello()->set_generation(2);
  now.hello()->set_previous_actor_id("ada");
  now.hello()->set_previous_generation(1);
  now.hello()->set_previous_env_steps_collected(kFragmentSteps);
  now.Join();
  EXPECT_EQ(collector_->account().lost(), kFragmentSteps);
}

TEST_F(LearnerServiceTest, NobodyIsSentAwayOnTheWordOfACoordinatorThatHasJustStarted) {
  Serve();
  ScriptedActor ada(port_, "ada");
  ada.Join();
  v1::StatusResponse status = StatusOf({});
  status.set_uptime_seconds(1);
  service_.Confirm(status, MonotonicNow());
  EXPECT_TRUE(service_.HasUnconfirmed());
  OpenIteration(1);
  ada.ReadTicket();
}

TEST_F(LearnerServiceTest, PoliciesAreForThoseWithATrajectoryStream) {
  Serve();
  Publish(1);
  ScriptedActor ada(port_, "ada"), bob(port_, "bob");
  EXPECT_EQ(ada.Subscribe()->End().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  ada.hello()->set_generation(3);
  ada.Join();
  EXPECT_EQ(ada.Subscribe()->Next(), 1u);
  ada.hello()->set_generation(1);  // As it joined: it has left this learner twice.
  EXPECT_EQ(ada.Subscribe()->Next(), 1u);
  ada.hello()->set_generation(4);
  EXPECT_EQ(ada.Subscribe()->End().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(bob.Subscribe()->End().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(LearnerServiceTest, WhoIsSentAwayGetsNoMorePolicies) {
  Serve();
  Publish(1);
  ScriptedActor ada(port_, "ada"), bob(port_, "bob");
  ada.Join();
  bob.Join();
  auto adas = ada.Subscribe(), bobs = bob.Subscribe();
  EXPECT_EQ(adas->Next(), 1u);
  EXPECT_EQ(bobs->Next(), 1u);
  service_.Confirm(StatusOf({{"ada", 1}}), MonotonicNow());
  // Whether or not bob reads that its stream has ended.
  EXPECT_EQ(bobs->End().error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(bob.Subscribe()->End().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  Publish(2);
  EXPECT_EQ(adas->Next(), 2u);
}

TEST_F(LearnerServiceTest, PoliciesEndWithTheTrajectoryStream) {
  Serve();
  ScriptedActor ada(port_, "ada");
  ada.Join();
  Publish(1);
  auto policies = ada.Subscribe();
  EXPECT_EQ(policies->Next(), 1u);
  ada.SendGoodbye();
  EXPECT_TRUE(ada.End().ok());
  EXPECT_EQ(policies->End().error_code(), grpc::StatusCode::ABORTED);
}

}  // namespace
}  // namespace skein
