// SPDX-License-Identifier: Apache-2.0
#include "actor/outbox.h"

#include <thread>

#include "base/process/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

v1::Ticket MakeTicket(uint64_t id) {
  v1::Ticket ticket;
  ticket.set_id(id);
  return ticket;
}

// A fragment of 2 x 5 = 10 env steps.
Fragment MakeFragment(uint64_t ticket_id) {
  Fragment fragment;
  fragment.header.set_ticket_id(ticket_id);
  fragment.header.set_steps(2);
  fragment.header.set_group_envs(5);
  fragment.block = std::make_shared<const std::string>("values");
  return fragment;
}

v1::Receipt MakeReceipt(uint64_t sequence) {
  v1::Receipt receipt;
  receipt.set_sequence(sequence);
  receipt.set_result(v1::RECEIPT_RESULT_ACCEPTED);
  return receipt;
}

class OutboxTest : public testing::Test {
 protected:
  OutboxTest() {
    outbox_.BeginConnection("ada", 1);
    outbox_.BeginStream(1, 0);
  }
  // Takes ticket `id`, which must be next, and puts its fragment.
  void Work(uint64_t id) {
    const auto held = outbox_.TakeTicket();
    ASSERT_TRUE(held);
    ASSERT_EQ(held->ticket.id(), id);
    outbox_.PutFragment(MakeFragment(id));
  }
  uint64_t NextSequence(uint64_t stream) {
    const auto fragment = outbox_.NextToSend(stream);
    return fragment == nullptr ? 0 : fragment->header.sequence();
  }
  // Whether a runner would be given no ticket now.
  bool HasNoTicket() {
    outbox_.AddTicket(stream_, MakeTicket(999));
    const uint64_t id = outbox_.TakeTicket()->ticket.id();
    outbox_.DropTicket(id);
    return id == 999;
  }
  Outbox outbox_;
  uint64_t stream_ = 1;
};

TEST_F(OutboxTest, NumbersFragmentsAndFillsInWhoMadeThem) {
  outbox_.AddTicket(1, MakeTicket(5));
  outbox_.AddTicket(1, MakeTicket(6));
  Work(5);
  Work(6);
  const auto first = outbox_.NextToSend(1), second = outbox_.NextToSend(1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->header.actor_id(), "ada");
  EXPECT_EQ(first->header.generation(), 1u);
  EXPECT_EQ(first->header.sequence(), 1u);
  EXPECT_EQ(first->header.ticket_id(), 5u);
  EXPECT_EQ(first->header.env_steps_collected(), 10u);
  EXPECT_EQ(second->header.sequence(), 2u);
  EXPECT_EQ(second->header.env_steps_collected(), 20u);
  EXPECT_EQ(outbox_.connection().env_steps_collected, 20u);
  EXPECT_EQ(outbox_.unreceipted(), 2u);
}

TEST_F(OutboxTest, ATicketKnowsItsConnection) {
  outbox_.AddTicket(1, MakeTicket(5));
  EXPECT_EQ(outbox_.TakeTicket()->stream, 1u);
}

TEST_F(OutboxTest, AReceiptForgetsTheFragment) {
  for (uint64_t id : {5, 6}) outbox_.AddTicket(1, MakeTicket(id));
  Work(5);
  Work(6);
  outbox_.Acknowledge(MakeReceipt(1));
  EXPECT_EQ(outbox_.unreceipted(), 1u);
  outbox_.Acknowledge(MakeReceipt(1));
  outbox_.Acknowledge(MakeReceipt(77));
  EXPECT_EQ(outbox_.unreceipted(), 1u);
  EXPECT_FALSE(outbox_.WaitUntilReceipted(absl::ZeroDuration()));
  outbox_.Acknowledge(MakeReceipt(2));
  EXPECT_TRUE(outbox_.WaitUntilReceipted(absl::ZeroDuration()));
}

TEST_F(OutboxTest, SendsAgainWhatWasNotReceiptedAfterAReconnection) {
  for (uint64_t id : {5, 6, 7}) outbox_.AddTicket(1, MakeTicket(id));
  for (uint64_t id : {5, 6, 7}) Work(id);
  for (uint64_t sequence : {1, 2, 3}) EXPECT_EQ(NextSequence(1), sequence);
  outbox_.Acknowledge(MakeReceipt(1));
  outbox_.EndStream(1);
  EXPECT_EQ(outbox_.NextToSend(1), nullptr);
  // The learner had receipted the second too; that receipt did not arrive.
  outbox_.BeginStream(2, 2);
  EXPECT_EQ(outbox_.unreceipted(), 1u);
  EXPECT_EQ(outbox_.NextToSend(1), nullptr);
  EXPECT_EQ(NextSequence(2), 3u);
}

TEST_F(OutboxTest, ALateEndOfAnOlderConnectionDoesNotEndTheNewOne) {
  outbox_.BeginStream(2, 0);
  outbox_.AddTicket(2, MakeTicket(5));
  outbox_.EndStream(1);
  Work(5);
  EXPECT_EQ(NextSequence(2), 1u);
}

TEST_F(OutboxTest, TicketsNotBegunAreVoidAfterAReconnection) {
  outbox_.AddTicket(1, MakeTicket(5));
  outbox_.BeginStream(2, 0);
  stream_ = 2;
  outbox_.AddTicket(1, MakeTicket(6));  // Came over the old connection.
  EXPECT_TRUE(HasNoTicket());
}

TEST_F(OutboxTest, TicketsNotBegunAreVoidWhenTheConnectionEnds) {
  outbox_.AddTicket(1, MakeTicket(5));
  outbox_.EndStream(1);
  EXPECT_TRUE(HasNoTicket());
}

TEST_F(OutboxTest, ATicketAtWorkIsNotWorkedOnTwice) {
  outbox_.AddTicket(1, MakeTicket(5));
  ASSERT_TRUE(outbox_.TakeTicket());
  outbox_.BeginStream(2, 0);
  stream_ = 2;
  outbox_.AddTicket(2, MakeTicket(5));
  EXPECT_TRUE(HasNoTicket());
  outbox_.PutFragment(MakeFragment(5));
  outbox_.AddTicket(2, MakeTicket(5));  // Done, and not receipted.
  EXPECT_TRUE(HasNoTicket());
  outbox_.Acknowledge(MakeReceipt(1));
  EXPECT_TRUE(HasNoTicket());
  outbox_.AddTicket(2, MakeTicket(5));  // The fragment was refused and the ticket granted again.
  EXPECT_EQ(outbox_.TakeTicket()->ticket.id(), 5u);
}

TEST_F(OutboxTest, ATicketGrantedAnewBeforeItsFragmentWasRefusedIsDoneAgain) {
  outbox_.AddTicket(1, MakeTicket(5));
  ASSERT_TRUE(outbox_.TakeTicket());
  outbox_.PutFragment(MakeFragment(5));
  outbox_.AddTicket(1, MakeTicket(5));  // Overtook the receipt.
  v1::Receipt refused = MakeReceipt(1);
  refused.set_result(v1::RECEIPT_RESULT_REJECTED);
  outbox_.Acknowledge(refused);
  EXPECT_EQ(outbox_.TakeTicket()->ticket.id(), 5u);
}

TEST_F(OutboxTest, ADroppedTicketCanBeGrantedAgain) {
  outbox_.AddTicket(1, MakeTicket(5));
  ASSERT_TRUE(outbox_.TakeTicket());
  outbox_.DropTicket(5);
  outbox_.AddTicket(1, MakeTicket(5));
  EXPECT_EQ(outbox_.TakeTicket()->ticket.id(), 5u);
}

TEST_F(OutboxTest, ATicketDroppedAfterItWasGrantedAnewIsNotForgotten) {
  outbox_.AddTicket(1, MakeTicket(5));
  ASSERT_TRUE(outbox_.TakeTicket());
  outbox_.BeginStream(2, 0);
  outbox_.AddTicket(2, MakeTicket(5));  // The learner believes from here on that it is worked on.
  outbox_.DropTicket(5);                // The runner noticed late that the first connection is gone.
  const auto held = outbox_.TakeTicket();
  ASSERT_TRUE(held);
  EXPECT_EQ(held->ticket.id(), 5u);
  EXPECT_EQ(held->stream, 2u);
  outbox_.DropTicket(5);
  stream_ = 2;
  EXPECT_TRUE(HasNoTicket());
}

TEST_F(OutboxTest, ATicketGrantedAnewByAConnectionThatBrokeIsVoid) {
  outbox_.AddTicket(1, MakeTicket(5));
  ASSERT_TRUE(outbox_.TakeTicket());
  outbox_.BeginStream(2, 0);
  outbox_.AddTicket(2, MakeTicket(5));
  outbox_.EndStream(2);
  outbox_.DropTicket(5);
  outbox_.BeginStream(3, 0);
  stream_ = 3;
  EXPECT_TRUE(HasNoTicket());
}

TEST_F(OutboxTest, ANewLifeNumbersAnewAndGivesUpWhatWasNotDelivered) {
  outbox_.AddTicket(1, MakeTicket(5));
  Work(5);
  EXPECT_EQ(outbox_.BeginConnection("ada", 1).generation, 0u);  // The same: nothing changes.
  EXPECT_EQ(outbox_.unreceipted(), 1u);
  const Outbox::Connection before = outbox_.BeginConnection("ada", 2);
  EXPECT_EQ(before.actor_id, "ada");
  EXPECT_EQ(before.generation, 1u);
  EXPECT_EQ(before.env_steps_collected, 10u);
  EXPECT_EQ(outbox_.unreceipted(), 0u);
  EXPECT_EQ(outbox_.connection().env_steps_collected, 0u);
  EXPECT_EQ(outbox_.env_steps_collected(), 10u);
  outbox_.BeginStream(2, 0);
  outbox_.AddTicket(2, MakeTicket(5));  // The fragment was given up, so the ticket can come again.
  Work(5);
  EXPECT_EQ(NextSequence(2), 1u);
  EXPECT_EQ(outbox_.env_steps_collected(), 20u);
  // Asked again, it tells the same connection before.
  EXPECT_EQ(outbox_.BeginConnection("ada", 2).env_steps_collected, 10u);
  EXPECT_EQ(outbox_.BeginConnection("bob", 2).env_steps_collected, 10u);
  EXPECT_EQ(outbox_.env_steps_collected(), 20u);
}

TEST_F(OutboxTest, AFragmentBegunInTheLifeBeforeBelongsToTheNewOne) {
  outbox_.AddTicket(1, MakeTicket(5));
  ASSERT_TRUE(outbox_.TakeTicket());
  outbox_.BeginConnection("ada", 2);
  outbox_.BeginStream(2, 0);
  outbox_.PutFragment(MakeFragment(5));
  const auto fragment = outbox_.NextToSend(2);
  ASSERT_TRUE(fragment);
  EXPECT_EQ(fragment->header.generation(), 2u);
  EXPECT_EQ(fragment->header.sequence(), 1u);
}

// A connection that brings tickets and breaks before anything is receipted, again and again.
TEST(FaultRow15, TheOldestFragmentIsDroppedWhenTooManyWait) {
  Outbox outbox(2);
  outbox.BeginConnection("ada", 1);
  std::vector<bool> dropped;
  for (uint64_t stream = 1; stream <= 3; ++stream) {
    outbox.BeginStream(stream, 0);
    outbox.AddTicket(stream, MakeTicket(stream));
    ASSERT_TRUE(outbox.TakeTicket());
    dropped.push_back(outbox.PutFragment(MakeFragment(stream)));
    outbox.EndStream(stream);
  }
  EXPECT_EQ(dropped, (std::vector<bool>{false, false, true}));
  EXPECT_EQ(outbox.unreceipted(), 2u);
  outbox.BeginStream(4, 0);
  EXPECT_EQ(outbox.NextToSend(4)->header.sequence(), 2u);
  const auto last = outbox.NextToSend(4);
  EXPECT_EQ(last->header.sequence(), 3u);
  EXPECT_EQ(last->header.env_steps_collected(), 30u);  // 10 of them are lost, and the learner can tell so.
  // What was dropped can be done again.
  outbox.AddTicket(4, MakeTicket(1));
  EXPECT_EQ(outbox.TakeTicket()->ticket.id(), 1u);
}

TEST(FaultRow15, ATicketOfADroppedFragmentThatWasGrantedAnewIsDoneAgain) {
  Outbox outbox(1);
  outbox.BeginConnection("ada", 1);
  outbox.BeginStream(1, 0);
  for (uint64_t id : {1, 2}) outbox.AddTicket(1, MakeTicket(id));
  ASSERT_TRUE(outbox.TakeTicket());
  EXPECT_FALSE(outbox.PutFragment(MakeFragment(1)));
  ASSERT_EQ(outbox.TakeTicket()->ticket.id(), 2u);
  outbox.AddTicket(1, MakeTicket(1));  // In hand still.
  EXPECT_TRUE(outbox.PutFragment(MakeFragment(2)));
  EXPECT_EQ(outbox.TakeTicket()->ticket.id(), 1u);
}

TEST_F(OutboxTest, TellsHowLongTheOldestFragmentHasWaited) {
  EXPECT_EQ(outbox_.waiting(), absl::ZeroDuration());
  outbox_.AddTicket(1, MakeTicket(7));
  const absl::Duration begin = MonotonicNow();
  Work(7);
  const absl::Duration waited = outbox_.waiting();  // Before the clock is read: a macro may do that in either order.
  EXPECT_LE(waited, MonotonicNow() - begin);
  EXPECT_GE(outbox_.waiting(), absl::ZeroDuration());
  outbox_.Acknowledge(MakeReceipt(1));
  EXPECT_EQ(outbox_.waiting(), absl::ZeroDuration());
}

TEST_F(OutboxTest, ALifeWithAnotherLearnerTakesWhatWasNotDeliveredAlong) {
  for (uint64_t id : {5, 6, 7}) outbox_.AddTicket(1, MakeTicket(id));
  for (uint64_t id : {5, 6, 7}) Work(id);
  for (uint64_t sequence : {1, 2, 3}) EXPECT_EQ(NextSequence(1), sequence);
  outbox_.Acknowledge(MakeReceipt(1));
  outbox_.EndStream(1);
  const Outbox::Connection before = outbox_.BeginConnection("ada", 2, Outbox::Undelivered::kSentAgain);
  EXPECT_EQ(before.env_steps_collected, 10u);  // Of 30 the learner before has 10.
  EXPECT_EQ(outbox_.connection().env_steps_collected, 20u);
  EXPECT_EQ(outbox_.env_steps_collected(), 30u);
  outbox_.BeginStream(2, 0);
  for (uint64_t sequence : {1, 2}) {
    const auto fragment = outbox_.NextToSend(2);
    ASSERT_TRUE(fragment);
    EXPECT_EQ(fragment->header.generation(), 2u);
    EXPECT_EQ(fragment->header.sequence(), sequence);
    EXPECT_EQ(fragment->header.ticket_id(), sequence + 5);
    EXPECT_EQ(fragment->header.env_steps_collected(), 10 * sequence);
  }
  outbox_.AddTicket(2, MakeTicket(8));
  Work(8);
  EXPECT_EQ(NextSequence(2), 3u);
  EXPECT_EQ(outbox_.connection().env_steps_collected, 30u);
  EXPECT_EQ(outbox_.env_steps_collected(), 40u);
}

TEST_F(OutboxTest, LeavingFinishesWhatWasBegunAndNothingElse) {
  for (uint64_t id : {5, 6, 7}) outbox_.AddTicket(1, MakeTicket(id));
  ASSERT_TRUE(outbox_.TakeTicket());
  ASSERT_TRUE(outbox_.TakeTicket());
  outbox_.LeaveStream(77);  // Another one: nothing changes.
  outbox_.LeaveStream(1);
  outbox_.AddTicket(1, MakeTicket(8));
  outbox_.PutFragment(MakeFragment(5));
  EXPECT_EQ(NextSequence(1), 1u);
  std::thread sender([&] {
    EXPECT_EQ(outbox_.NextToSend(1), nullptr);
    EXPECT_EQ(outbox_.unreceipted(), 0u);
  });
  outbox_.Acknowledge(MakeReceipt(1));
  outbox_.DropTicket(6);
  sender.join();
  outbox_.EndStream(1);
  outbox_.BeginStream(2, 0);
  stream_ = 2;
  EXPECT_TRUE(HasNoTicket());
}

TEST_F(OutboxTest, StopEndsRunnersAndStopSendingEndsSendingOnceAllIsSent) {
  outbox_.AddTicket(1, MakeTicket(5));
  outbox_.AddTicket(1, MakeTicket(6));
  Work(5);
  outbox_.Stop();
  EXPECT_FALSE(outbox_.TakeTicket());
  outbox_.AddTicket(1, MakeTicket(7));
  EXPECT_FALSE(outbox_.TakeTicket());
  outbox_.StopSending();
  EXPECT_EQ(NextSequence(1), 1u);
  EXPECT_EQ(outbox_.NextToSend(1), nullptr);
}

TEST_F(OutboxTest, TellsWhoWatchesWheneverThereMayBeSomethingToSend) {
  int told = 0;
  uint64_t sequence = 0;
  bool over = false;
  outbox_.Watch([&] {
    ++told;
    const Outbox::ToSend next = outbox_.TryNextToSend(1);  // May be asked from there.
    if (next.fragment != nullptr) sequence = next.fragment->header.sequence();
    over = next.over;
  });
  for (uint64_t id : {5, 6, 7}) outbox_.AddTicket(1, MakeTicket(id));
  EXPECT_EQ(told, 0);
  Work(5);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(sequence, 1u);
  ASSERT_TRUE(outbox_.TakeTicket());
  outbox_.LeaveStream(1);
  outbox_.Acknowledge(MakeReceipt(1));
  EXPECT_FALSE(over);
  outbox_.DropTicket(6);
  EXPECT_TRUE(over);
  EXPECT_EQ(told, 4);
  outbox_.Watch(nullptr);
  outbox_.StopSending();
  EXPECT_EQ(told, 4);
}

TEST_F(OutboxTest, TriesWithoutWaiting) {
  outbox_.AddTicket(1, MakeTicket(5));
  Outbox::ToSend next = outbox_.TryNextToSend(1);
  EXPECT_EQ(next.fragment, nullptr);
  EXPECT_FALSE(next.over);
  EXPECT_TRUE(outbox_.TryNextToSend(2).over);  // Another stream.
  Work(5);
  outbox_.StopSending();
  next = outbox_.TryNextToSend(1);
  ASSERT_NE(next.fragment, nullptr);
  EXPECT_EQ(next.fragment->header.ticket_id(), 5u);
  EXPECT_TRUE(outbox_.TryNextToSend(1).over);
}

TEST_F(OutboxTest, WhoWaitsIsWoken) {
  std::thread runner([&] { EXPECT_EQ(outbox_.TakeTicket()->ticket.id(), 5u); });
  outbox_.AddTicket(1, MakeTicket(5));
  runner.join();
  std::thread stopped([&] { EXPECT_FALSE(outbox_.TakeTicket()); });
  outbox_.Stop();
  stopped.join();
  std::thread sender([&] { EXPECT_EQ(NextSequence(1), 1u); });
  outbox_.PutFragment(MakeFragment(5));
  sender.join();
  std::thread broken([&] { EXPECT_EQ(outbox_.NextToSend(1), nullptr); });
  outbox_.EndStream(1);
  broken.join();
  std::thread receipts([&] { EXPECT_TRUE(outbox_.WaitUntilReceipted(absl::Seconds(20))); });
  outbox_.Acknowledge(MakeReceipt(1));
  receipts.join();
}

}  // namespace
}  // namespace skein
