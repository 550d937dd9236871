// SPDX-License-Identifier: Apache-2.0
// An actor that is sent from one learner to another.
#include <atomic>

#include "gtest/gtest.h"
#include "tests/actor/fake_learner.h"
#include "tests/actor/learner_link_fixture.h"

namespace skein {
namespace {

TEST_F(LearnerLinkTest, GoesToAnotherLearnerInOrderAndComesBackUnderNewNumbers) {
  std::atomic<bool> granted{false};
  // The first learner, at both visits: two tickets, of which one is begun before the actor is sent away.
  const auto visit = [&](uint64_t generation, Stream* stream) {
    const v1::Hello hello = Welcome(stream);
    EXPECT_EQ(hello.generation(), generation);
    SendTicket(stream, 10 * generation);
    SendTicket(stream, 10 * generation + 1);
    granted = true;
    const v1::FragmentHeader fragment = ReadFragment(stream);
    EXPECT_EQ(fragment.ticket_id(), 10 * generation);
    EXPECT_EQ(fragment.generation(), generation);
    EXPECT_EQ(fragment.sequence(), 1u);
    v1::CollectResponse response;
    response.mutable_receipt()->set_sequence(1);
    response.mutable_receipt()->set_result(v1::RECEIPT_RESULT_ACCEPTED);
    response.mutable_ticket()->set_id(10 * generation + 2);  // Not begun either.
    stream->Write(response);
    v1::CollectRequest request;
    EXPECT_TRUE(stream->Read(&request));
    EXPECT_TRUE(request.has_goodbye());
    EXPECT_EQ(request.goodbye().env_steps_collected(), 10u);  // Of this stay.
    EXPECT_FALSE(stream->Read(&request));
  };
  FakeLearner first([&](int connection, Stream* stream) {
    visit(connection == 0 ? 1 : 3, stream);
    return grpc::Status::OK;
  });
  FakeLearner second([&](int connection, Stream* stream) {
    if (connection == 1) {
      const v1::Hello hello = Welcome(stream);
      EXPECT_EQ(hello.generation(), 4u);
      EXPECT_EQ(hello.previous_generation(), 3u);
      EXPECT_EQ(hello.previous_env_steps_collected(), 10u);
      return Finished(stream);
    }
    visit(2, stream);
    return grpc::Status::OK;
  });
  StartLink(TargetAt(first.port()));
  for (const int port : {second.port(), first.port(), second.port()}) {
    WaitUntil([&] { return granted.load(); });
    const auto held = outbox_.TakeTicket();
    ASSERT_TRUE(held);
    granted = false;
    link_->SetTarget(TargetAt(port));
    Fragment fragment{.header = {}, .block = std::make_shared<const std::string>()};
    fragment.header.set_ticket_id(held->ticket.id());
    fragment.header.set_steps(5);
    fragment.header.set_group_envs(2);
    outbox_.PutFragment(std::move(fragment));
  }
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_TRUE(link_->finished());
  EXPECT_EQ(outbox_.env_steps_collected(), 30u);
  EXPECT_EQ(outbox_.unreceipted(), 0u);
  EXPECT_EQ(first.connections(), 2);
  EXPECT_EQ(second.connections(), 2);
}

TEST_F(LearnerLinkTest, SentBackWhileItLeavesItSaysGoodbyeAllTheSame) {
  FakeLearner learner([](int connection, Stream* stream) {
    const v1::Hello hello = Welcome(stream);
    EXPECT_EQ(hello.generation(), 1u + connection);
    if (connection == 1) return Finished(stream);
    SendTicket(stream, 5);
    v1::CollectRequest request;
    EXPECT_TRUE(stream->Read(&request) && request.has_fragment());
    SendReceipt(stream, 1);
    EXPECT_TRUE(stream->Read(&request) && request.has_goodbye());
    return Drain(stream);
  });
  StartLink(TargetAt(learner.port()));
  ASSERT_TRUE(outbox_.TakeTicket());
  link_->SetTarget(TargetAt(1));
  link_->SetTarget(TargetAt(learner.port()));
  Fragment fragment{.header = {}, .block = std::make_shared<const std::string>()};
  fragment.header.set_ticket_id(5);
  outbox_.PutFragment(std::move(fragment));
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_EQ(learner.connections(), 2);
}

TEST_F(LearnerLinkTest, TakesWhatADeadLearnerDidNotReceiptToTheNext) {
  std::atomic<bool> delivered{false};
  auto before = std::make_unique<FakeLearner>([&](int, Stream* stream) {
    Welcome(stream);
    SendTicket(stream, 5);
    SendTicket(stream, 6);
    ReadFragment(stream);
    SendReceipt(stream, 1);
    ReadFragment(stream);
    delivered = true;
    return Drain(stream);
  });
  FakeLearner after([](int, Stream* stream) {
    const v1::Hello hello = Welcome(stream);
    EXPECT_EQ(hello.generation(), 2u);
    EXPECT_EQ(hello.previous_generation(), 1u);
    EXPECT_EQ(hello.previous_env_steps_collected(), 10u);
    const v1::FragmentHeader fragment = ReadFragment(stream);
    EXPECT_EQ(fragment.sequence(), 1u);
    EXPECT_EQ(fragment.ticket_id(), 6u);
    EXPECT_EQ(fragment.env_steps_collected(), 10u);
    SendReceipt(stream, 1);
    return Finished(stream);
  });
  StartLink(TargetAt(before->port()));
  Work(2);
  WaitUntil([&] { return delivered && outbox_.unreceipted() == 1; });
  before.reset();
  link_->SetTarget(TargetAt(after.port()));
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_EQ(outbox_.unreceipted(), 0u);
  EXPECT_EQ(outbox_.env_steps_collected(), 20u);
}

TEST_F(LearnerLinkTest, TellsHowLongDataHaveBeenHeldUp) {
  std::atomic<bool> connected{false}, goes_on{false};
  FakeLearner learner([&](int connection, Stream* stream) {
    if (connection == 0) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "still starting");
    Welcome(stream);
    connected = true;
    WaitUntil([&] { return goes_on.load(); });
    SendTicket(stream, 5);
    ReadFragment(stream);
    WaitUntil([&] { return link_->undelivered() > absl::ZeroDuration(); });  // It has no receipt.
    SendReceipt(stream, 1);
    WaitUntil([&] { return link_->undelivered() == absl::ZeroDuration(); });
    return Finished(stream);
  });
  StartLink({"", "run", "ada", 1});
  EXPECT_EQ(link_->undelivered(), absl::ZeroDuration());  // There is no learner.
  link_->SetTarget(TargetAt(learner.port()));
  WaitUntil([&] { return connected || link_->undelivered() > absl::ZeroDuration(); });
  WaitUntil([&] { return connected && link_->undelivered() == absl::ZeroDuration(); });
  goes_on = true;
  Work(1);
  EXPECT_EQ(End(), absl::OkStatus());
  EXPECT_EQ(link_->undelivered(), absl::ZeroDuration());
}

}  // namespace
}  // namespace skein
