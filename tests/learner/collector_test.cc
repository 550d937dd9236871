// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/collector.h"

#include <limits>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learner/collector_fixture.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(CollectorTest, RefusesAnotherProtocolRunOrEnvironment) {
  const auto code = [&](const v1::Hello& hello) { return collector_.Open(hello).status().code(); };
  v1::Hello hello = MakeHello(kAda);
  hello.set_protocol_major(kProtocolMajor + 1);
  EXPECT_EQ(code(hello), absl::StatusCode::kFailedPrecondition);
  hello = MakeHello(kAda);
  hello.set_run_id("other");
  EXPECT_EQ(code(hello), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(collector_.Open(hello).status().message()), HasSubstr("run other, this learner to run run"));
  hello = MakeHello(kAda);
  hello.mutable_env_spec()->set_obs_size(99);
  EXPECT_EQ(code(hello), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(collector_.actors(), 0);
  EXPECT_EQ(code(MakeHello(kAda)), absl::StatusCode::kOk);
  EXPECT_EQ(collector_.actors(), 1);
  EXPECT_EQ(MetricValue(registry_, "skein_learner_actors"), 1);
}

TEST_F(CollectorTest, CollectsAnIterationFromTwoActorsOutOfOrder) {
  Open(kAda);
  Open(kBob);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  ASSERT_THAT(grants, SizeIs(2));
  EXPECT_EQ(collector_.DescribeHolders(), "ada (1), bob (1)");
  EXPECT_FALSE(Take());
  // The second group arrives first.
  SampleFragment second = Serve(grants[1].first, grants[1].second, 500, {{1, 0, true}});
  second.header.mutable_stage_seconds()->set_env_step(0.5);
  SampleFragment first = Serve(grants[0].first, grants[0].second, 100, {{0, 1, false}});
  first.header.mutable_stage_seconds()->set_env_step(0.25);
  first.header.mutable_stage_seconds()->set_wait(2);
  EXPECT_EQ(Deliver(grants[1].first, second), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_FALSE(Take());
  EXPECT_EQ(Deliver(grants[0].first, first), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_EQ(collector_.queued_fragments(), 2u);
  EXPECT_EQ(collector_.DescribeHolders(), "");

  const auto iteration = Take();
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->policy_version, 1u);
  EXPECT_EQ(iteration->batch->columns(), 4);
  // obs [3, 4, 3]: the first row of group 0 is its fragment's first row, that of group 1 begins two columns later.
  EXPECT_EQ(iteration->batch->values<float>("obs")[0], 100);
  EXPECT_EQ(iteration->batch->values<float>("obs")[2 * 3], 500);
  EXPECT_THAT(iteration->batch->values<int64_t>("final_index"), ElementsAre(1 * 4 + 2));
  EXPECT_THAT(iteration->batch->values<float>("episode_return"), ElementsAre(100, 500));
  EXPECT_EQ(iteration->state->env_state->shape(0), 4);
  const auto* state = reinterpret_cast<const double*>(iteration->state->env_state->data().data());
  EXPECT_EQ(state[0], 100);
  EXPECT_EQ(state[8], 500);
  EXPECT_EQ(iteration->stage_seconds.env_step(), 0.75);
  EXPECT_EQ(iteration->stage_seconds.wait(), 2);
  EXPECT_FALSE(Take());  // Once only.

  EXPECT_EQ(collector_.account().pending(), 2 * kFragmentSteps);
  collector_.Trained(2 * kFragmentSteps);
  EXPECT_EQ(collector_.account().trained(), 2 * kFragmentSteps);
  EXPECT_EQ(collector_.account().pending(), 0u);
  EXPECT_EQ(collector_.queued_fragments(), 0u);
  ExpectBalance();
}

TEST_F(CollectorTest, CountsEpisodesThatFailedOncePerIteration) {
  Open(kAda);
  Open(kBob);
  for (const uint64_t failed : {2, 0}) {
    collector_.OpenIteration(1);
    const auto grants = collector_.TakeGrants();
    for (const auto& [actor, ticket] : grants) {
      SampleFragment fragment = Serve(actor, ticket, 100, {{0, 1, true}});
      if (failed > 0) {
        fragment.header.set_episodes(0);
        fragment.header.set_failed_episodes(1);
        for (const char* const field : {"episode_return", "episode_length"}) fragment.Find(field)->data.clear();
      }
      EXPECT_EQ(Deliver(actor, fragment), v1::RECEIPT_RESULT_ACCEPTED);
    }
    const auto iteration = Take();
    ASSERT_TRUE(iteration);
    EXPECT_EQ(iteration->failed_episodes, failed);
    EXPECT_THAT(iteration->batch->values<float>("episode_return"), SizeIs(2 - failed));
    collector_.Trained(2 * kFragmentSteps);
  }
}

TEST_F(CollectorTest, ASequenceCountsOnce) {
  Open(kAda);
  collector_.OpenIteration(1);
  const SampleFragment fragment = Serve(kAda, collector_.TakeGrants().at(0).second);
  EXPECT_EQ(Deliver(kAda, fragment), v1::RECEIPT_RESULT_ACCEPTED);
  const std::string account = collector_.account().ShortDebugString();
  EXPECT_EQ(Deliver(kAda, fragment), v1::RECEIPT_RESULT_DUPLICATE);
  SampleFragment zero = fragment;
  zero.header.set_sequence(0);
  EXPECT_EQ(Deliver(kAda, zero), v1::RECEIPT_RESULT_DUPLICATE);
  EXPECT_EQ(collector_.account().ShortDebugString(), account);
  EXPECT_EQ(MetricValue(registry_, "skein_learner_batches_total", {{"result", "duplicate"}}), 2);
}

TEST_F(CollectorTest, AWelcomeTellsWhatHasArrived) {
  Open(kAda);
  collector_.OpenIteration(1);
  Deliver(kAda, Serve(kAda, collector_.TakeGrants().at(0).second));
  collector_.Disconnect(kAda);
  EXPECT_EQ(collector_.actors(), 0);
  EXPECT_EQ(collector_.Open(MakeHello(kAda))->last_sequence(), 1u);
  EXPECT_EQ(collector_.Open(MakeHello(kBob))->last_sequence(), 0u);
}

TEST_F(CollectorTest, ATicketServedTwiceIsStaleTheSecondTime) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const v1::Ticket ticket = collector_.TakeGrants().at(0).second;
  // Ada's connection breaks; bob gets her ticket; she comes back with it first.
  collector_.Disconnect(kAda);
  Open(kBob, 2);
  ASSERT_EQ(collector_.TakeGrants().at(0).second.id(), ticket.id());
  Open(kAda, 2);
  EXPECT_EQ(Deliver(kAda, Serve(kAda, ticket)), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_EQ(Deliver(kBob, Serve(kBob, ticket)), v1::RECEIPT_RESULT_STALE);
  EXPECT_EQ(collector_.account().stale(), kFragmentSteps);
  EXPECT_EQ(collector_.account().collected(), 2 * kFragmentSteps);
}

TEST_F(CollectorTest, AnotherPolicyVersionIsStaleAndTheTicketIsGrantedAgain) {
  Open(kAda);
  collector_.OpenIteration(3);
  const v1::Ticket ticket = collector_.TakeGrants().at(0).second;
  SampleFragment fragment = Serve(kAda, ticket);
  fragment.header.set_policy_version(2);
  EXPECT_EQ(Deliver(kAda, fragment), v1::RECEIPT_RESULT_STALE);
  ServeIteration();
  EXPECT_TRUE(Take());
}

TEST_F(CollectorTest, ATicketOfTheLastIterationIsVoid) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  for (const auto& [actor, ticket] : grants) Deliver(kAda, Serve(kAda, ticket));
  ASSERT_TRUE(Take());
  collector_.OpenIteration(1);  // Overlapped mode: the version may be the same.
  EXPECT_EQ(Deliver(kAda, Serve(kAda, grants[0].second)), v1::RECEIPT_RESULT_STALE);
}

TEST_F(CollectorTest, ARejectedFragmentIsCountedAndItsTicketGrantedAgain) {
  Open(kAda);
  collector_.OpenIteration(1);
  const v1::Ticket ticket = collector_.TakeGrants().at(0).second;
  SampleFragment fragment = Serve(kAda, ticket);
  SetElement(fragment.Find("reward"), 1, std::numeric_limits<float>::quiet_NaN());
  const v1::Receipt receipt = collector_.Receive(kAda, ReceivedFragment(fragment).frame(), 1);
  EXPECT_EQ(receipt.result(), v1::RECEIPT_RESULT_REJECTED);
  EXPECT_EQ(receipt.message(), "fields.reward: element 1 is not finite");
  EXPECT_EQ(MetricValue(registry_, "skein_learner_quarantined_total", {{"what", "batch"}}), 1);
  EXPECT_EQ(collector_.account().rejected(), kFragmentSteps);
  const auto again = collector_.TakeGrants();
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(Deliver(kAda, Serve(kAda, again[0].second)), v1::RECEIPT_RESULT_ACCEPTED);
  ServeIteration();
  ASSERT_TRUE(Take());
  collector_.Trained(2 * kFragmentSteps);
  EXPECT_EQ(collector_.account().collected(), 3 * kFragmentSteps);
  ExpectBalance();
}

TEST_F(CollectorTest, AMalformedSizeDoesNotEnterTheBooks) {
  Open(kAda);
  collector_.OpenIteration(1);
  SampleFragment fragment = Serve(kAda, collector_.TakeGrants().at(0).second);
  fragment.header.set_steps(4000000000u);
  fragment.header.set_env_steps_collected(0);
  EXPECT_EQ(Deliver(kAda, fragment), v1::RECEIPT_RESULT_REJECTED);
  EXPECT_EQ(collector_.account().rejected(), 0u);
  EXPECT_EQ(collector_.account().collected(), 0u);
}

TEST_F(CollectorTest, TheFilledBatchStaysWhileTheNextIsFilled) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  ServeIteration(100);
  const auto first = Take();
  ASSERT_TRUE(first);
  collector_.OpenIteration(1);
  ServeIteration(700);
  EXPECT_EQ(first->batch->values<float>("obs")[0], 100);
  const auto second = Take();
  ASSERT_TRUE(second);
  EXPECT_NE(second->batch, first->batch);
  EXPECT_EQ(second->batch->values<float>("obs")[0], 700);
  EXPECT_EQ(first->batch->values<float>("obs")[0], 100);
  EXPECT_EQ(collector_.queued_fragments(), 4u);
  collector_.OpenIteration(2);  // The first one's buffer is filled again.
  ServeIteration(900);
  EXPECT_EQ(Take()->batch, first->batch);
  EXPECT_EQ(second->batch->values<float>("obs")[0], 700);
}

TEST_F(CollectorTest, TicketsContinueFromTheState) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  for (const auto& [actor, ticket] : collector_.TakeGrants()) {
    EXPECT_FALSE(ticket.has_env_state());
    Deliver(kAda, Serve(kAda, ticket, 10 * static_cast<float>(ticket.first_env())));
  }
  const auto iteration = Take();
  ASSERT_TRUE(iteration);

  // A process that resumes grants what this one would.
  collector_.OpenIteration(2);
  Collector::Options options = MakeOptions();
  options.state = *iteration->state;
  options.first_ticket_id = 3;
  prometheus::Registry registry;
  LearnerMetrics metrics(&registry);
  Collector resumed(options, &metrics);
  ASSERT_TRUE(resumed.Open(MakeHello(kAda, 2)).ok());
  resumed.OpenIteration(2);
  const auto want = collector_.TakeGrants(), got = resumed.TakeGrants();
  ASSERT_THAT(want, SizeIs(2));
  ASSERT_THAT(got, SizeIs(2));
  for (int i : {0, 1}) EXPECT_EQ(got[i].second.SerializeAsString(), want[i].second.SerializeAsString());
}

TEST_F(CollectorTest, AnAccountIsContinued) {
  Collector::Options options = MakeOptions();
  options.account.set_collected(100);
  options.account.set_trained(90);
  options.account.set_pending(10);
  prometheus::Registry registry;
  LearnerMetrics metrics(&registry);
  Collector resumed(options, &metrics);
  EXPECT_EQ(resumed.account().lost(), 10u);
  EXPECT_EQ(resumed.account().pending(), 0u);
  EXPECT_EQ(MetricValue(registry, "skein_learner_env_steps_total", {{"fate", "trained"}}), 90);
}

TEST_F(CollectorTest, StopWakesWhoWaitsForGood) {
  Open(kAda);
  collector_.OpenIteration(1);
  absl::Notification woken;
  std::thread waiter([&] {
    EXPECT_FALSE(collector_.WaitForIteration(absl::InfiniteDuration()));
    woken.Notify();
  });
  collector_.Stop();
  EXPECT_TRUE(woken.WaitForNotificationWithTimeout(absl::Seconds(20)));
  waiter.join();
  collector_.Stop();
  EXPECT_FALSE(collector_.WaitForIteration(absl::InfiniteDuration()));
  EXPECT_THAT(collector_.TakeGrants(), IsEmpty());
  collector_.OpenIteration(2);
  EXPECT_THAT(collector_.TakeGrants(), IsEmpty());
}

TEST_F(CollectorTest, ACompletedIterationWakesWhoWaits) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  std::optional<Collector::Iteration> iteration;
  std::thread waiter([&] { iteration = collector_.WaitForIteration(absl::Seconds(20)); });
  ServeIteration();
  waiter.join();
  EXPECT_TRUE(iteration);
}

TEST_F(CollectorTest, WhatArrivesAfterStopIsStaleAndClosedBooksStayClosed) {
  Open(kAda);
  collector_.OpenIteration(1);
  const v1::Ticket ticket = collector_.TakeGrants().at(0).second;
  Deliver(kAda, Serve(kAda, ticket));
  const v1::Ticket second = collector_.TakeGrants().at(0).second;
  collector_.Stop();
  EXPECT_EQ(Deliver(kAda, Serve(kAda, second)), v1::RECEIPT_RESULT_STALE);
  const v1::StepAccount closed = collector_.CloseAccounts();
  EXPECT_EQ(closed.collected(), 2 * kFragmentSteps);
  EXPECT_EQ(closed.stale(), kFragmentSteps);
  EXPECT_EQ(closed.lost(), kFragmentSteps);  // Admitted, and never trained on.
  EXPECT_EQ(closed.pending(), 0u);
  EXPECT_EQ(Deliver(kAda, Serve(kAda, second)), v1::RECEIPT_RESULT_STALE);
  EXPECT_EQ(collector_.account().ShortDebugString(), closed.ShortDebugString());
}

class StickyCollectorTest : public CollectorTest {
 protected:
  static Collector::Options Sticky() {
    Collector::Options options = MakeOptions();
    options.shape.spec.set_relocatable(false);
    return options;
  }
  StickyCollectorTest() : CollectorTest(Sticky()) {}
};

TEST_F(StickyCollectorTest, CountsTheEpisodesThatAFailureAtAnActorRestarted) {
  v1::Hello hello = MakeHello(kAda, 2);
  hello.mutable_env_spec()->set_relocatable(false);
  ASSERT_TRUE(collector_.Open(hello).ok());
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  ASSERT_THAT(grants, SizeIs(2));
  SampleFragment fragment = Serve(kAda, grants[0].second);
  fragment.header.set_restarted_episodes(2);
  EXPECT_EQ(Deliver(kAda, fragment), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_EQ(Deliver(kAda, fragment), v1::RECEIPT_RESULT_DUPLICATE);  // And is counted once.
  collector_.TakeGrants();
  EXPECT_EQ(MetricValue(registry_, "skein_learner_restarted_episodes_total"), 2);
}

TEST_F(CollectorTest, GoodbyeClosesTheBooksAndFreesTheTickets) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  ASSERT_THAT(grants, SizeIs(2));
  Deliver(kAda, Serve(kAda, grants[0].second));
  v1::Goodbye goodbye;
  goodbye.set_env_steps_collected(2 * kFragmentSteps);  // One fragment did not make it.
  collector_.Depart(kAda, goodbye);
  EXPECT_EQ(collector_.account().lost(), kFragmentSteps);
  EXPECT_EQ(collector_.actors(), 0);
  EXPECT_TRUE(absl::IsAborted(collector_.Open(MakeHello(kAda)).status()));
  Open(kBob, 2);
  EXPECT_EQ(collector_.TakeGrants().at(0).second.id(), grants[1].second.id());
  ExpectBalance();
}

TEST_F(CollectorTest, AnActorThatJoinedAgainClosesItsEarlierConnection) {
  Open(kAda);
  collector_.OpenIteration(1);
  const v1::Ticket ticket = collector_.TakeGrants().at(0).second;
  // It finished the fragment, lost the connection and its lease, and joins again as cora.
  const SampleFragment late = Serve(kAda, ticket);
  const v1::Hello hello = MakeHello({"cora", 5});
  ASSERT_TRUE(collector_.Open(hello).ok());
  collector_.Close(kAda, kFragmentSteps);
  EXPECT_EQ(collector_.account().lost(), kFragmentSteps);
  EXPECT_EQ(collector_.actors(), 1);
  // Cora gets the ticket although the old stream has not noticed yet, and what that one still brings is not counted.
  EXPECT_EQ(collector_.TakeGrants().at(0).second.id(), ticket.id());
  EXPECT_EQ(Deliver(kAda, late), v1::RECEIPT_RESULT_STALE);
  EXPECT_EQ(collector_.account().lost(), kFragmentSteps);
  EXPECT_EQ(collector_.account().stale(), 0u);
  EXPECT_EQ(collector_.account().pending(), 0u);
  collector_.Disconnect(kAda);
  EXPECT_EQ(collector_.actors(), 1);
  ASSERT_TRUE(collector_.Open(hello).ok());  // Hello may come twice, on two connections.
  collector_.Close(kAda, kFragmentSteps);
  EXPECT_EQ(collector_.account().lost(), kFragmentSteps);
}

TEST_F(CollectorTest, ASilentConnectionIsClosed) {
  Open(kAda);
  collector_.OpenIteration(1);
  Deliver(kAda, Serve(kAda, collector_.TakeGrants().at(0).second));
  // It has finished ten fragments, of which the second to ninth never came: its connection broke again and again.
  for (int i = 0; i < 8; ++i) {
    ASSERT_THAT(collector_.TakeGrants(), SizeIs(1));
    collector_.Disconnect(kAda);
    Open(kAda);
  }
  SampleFragment fragment = Serve(kAda, collector_.TakeGrants().at(0).second);
  fragment.header.set_sequence(10);
  fragment.header.set_env_steps_collected(10 * kFragmentSteps);
  Deliver(kAda, fragment);
  collector_.CloseSilent(absl::ZeroDuration());
  EXPECT_EQ(collector_.account().lost(), 0u);  // It is connected.
  collector_.Disconnect(kAda);
  collector_.CloseSilent(absl::Hours(1));
  EXPECT_EQ(collector_.account().lost(), 0u);
  collector_.CloseSilent(absl::ZeroDuration());
  EXPECT_EQ(collector_.account().lost(), 8 * kFragmentSteps);  // 10 - 2.
  EXPECT_TRUE(absl::IsAborted(collector_.Open(MakeHello(kAda)).status()));
  ExpectBalance();
}

TEST_F(CollectorTest, ActorsDeliverAtTheSameTime) {
  constexpr int kActors = 4, kIterations = 20;
  Collector::Options options = MakeOptions();
  options.share_envs = 16;  // 8 groups
  prometheus::Registry registry;
  LearnerMetrics metrics(&registry);
  Collector collector(options, &metrics);
  for (int i = 0; i < kActors; ++i) ASSERT_TRUE(collector.Open(MakeHello({"a", 1 + uint64_t(i)}, 2)).ok());
  for (int iteration = 1; iteration <= kIterations; ++iteration) {
    collector.OpenIteration(iteration);
    std::map<ConnectionId, std::vector<SampleFragment>> fragments;
    for (const auto& [actor, ticket] : collector.TakeGrants()) {
      fragments[actor].push_back(Serve(actor, ticket, static_cast<float>(ticket.first_env())));
    }
    std::vector<std::thread> threads;
    for (const auto& [actor, of_actor] : fragments) {
      threads.emplace_back([&collector, actor = actor, &of_actor = of_actor] {
        for (const auto& fragment : of_actor) {
          EXPECT_EQ(collector.Receive(actor, ReceivedFragment(fragment).frame(), 1).result(),
                    v1::RECEIPT_RESULT_ACCEPTED);
        }
      });
    }
    const auto collected = collector.WaitForIteration(absl::Seconds(20));
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(collected);
    // obs [3, 16, 3]; group b's first environment is column 2 b, and its numbers begin at 2 b.
    for (int b = 0; b < 8; ++b) ASSERT_EQ(collected->batch->values<float>("obs")[2 * b * 3], 2 * b);
    collector.Trained(8 * kFragmentSteps);
  }
  EXPECT_EQ(collector.account().trained(), kIterations * 8 * kFragmentSteps);
  EXPECT_EQ(collector.account().collected(), collector.account().trained());
}

}  // namespace
}  // namespace skein
