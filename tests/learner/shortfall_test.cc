// SPDX-License-Identifier: Apache-2.0
// A learner's share of the environments, and iterations that end with what has arrived.
#include <thread>

#include "gmock/gmock.h"
#include "tests/learner/collector_fixture.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// As CollectorTest: two groups of two environments, here with two fragments of two steps in an iteration.
class ShortfallTest : public CollectorTest {
 protected:
  ShortfallTest() : CollectorTest(WithFragments(MakeOptions(), 2)) {}
};

TEST_F(ShortfallTest, TakesWholeGroupsAndCountsTheRestAsStale) {
  collector_.OpenIteration(1);
  ServeGroup(0, 100);
  ServeGroup(1, 500);
  ServeGroup(1, 600);
  const auto iteration = collector_.TakeWhatIsThere();
  ASSERT_TRUE(iteration);
  EXPECT_THAT(iteration->batch->slots(), ElementsAre(1));
  EXPECT_EQ(iteration->batch->share_envs(), 2);
  EXPECT_EQ(iteration->batch->steps(), 4);
  EXPECT_EQ(iteration->policy_version, 1u);
  // obs [5, 2, 3]: rows 0 and 1 of the first fragment, then the second's.
  ASSERT_THAT(iteration->batch->values<float>("obs"), SizeIs(5 * 2 * 3));
  EXPECT_EQ(iteration->batch->values<float>("obs")[0], 500);
  EXPECT_EQ(iteration->batch->values<float>("obs")[2 * 2 * 3], 600);
  EXPECT_FALSE(iteration->state);  // Group 0 has not been trained on yet.
  EXPECT_EQ(collector_.account().stale(), kFragmentSteps);
  EXPECT_EQ(collector_.account().pending(), 2 * kFragmentSteps);
  EXPECT_EQ(collector_.queued_fragments(), 2u);
  collector_.Trained(2 * kFragmentSteps);
  EXPECT_EQ(collector_.account().trained(), 2 * kFragmentSteps);
  EXPECT_EQ(collector_.queued_fragments(), 0u);
  ExpectBalance();
}

TEST_F(ShortfallTest, WhatComesForAnEndedIterationIsStale) {
  collector_.OpenIteration(1);
  const v1::Ticket ticket = TakeTicket(0);
  const auto iteration = collector_.TakeWhatIsThere();
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->batch->columns(), 0);
  EXPECT_THAT(iteration->batch->values<float>("obs"), IsEmpty());
  EXPECT_EQ(Deliver(kAda, Serve(kAda, ticket)), v1::RECEIPT_RESULT_STALE);
  collector_.OpenIteration(1);  // Nothing was trained on: the version may be the same.
  EXPECT_EQ(Deliver(kAda, Serve(kAda, ticket)), v1::RECEIPT_RESULT_STALE);
  EXPECT_EQ(collector_.account().stale(), 2 * kFragmentSteps);
  for (uint32_t group : {0, 1}) {
    for (int fragment : {0, 1}) ServeGroup(group, static_cast<float>(100 * fragment));
  }
  EXPECT_TRUE(Take());
}

TEST_F(ShortfallTest, MissingGroupsContinueFromWhatWasTrainedOn) {
  collector_.OpenIteration(1);
  for (uint32_t group : {0, 1}) {
    ServeGroup(group, 100);
    ServeGroup(group, 200);
  }
  const auto whole = Take();
  ASSERT_TRUE(whole);
  collector_.OpenIteration(2);
  ServeGroup(0, 300);
  ServeGroup(1, 300);
  ServeGroup(1, 400);
  const auto partial = collector_.TakeWhatIsThere();
  ASSERT_TRUE(partial);
  // A fragment's state [2, 4] begins with its offset.
  const auto* state = reinterpret_cast<const double*>(partial->state->env_state->data().data());
  EXPECT_EQ(state[0], 200);
  EXPECT_EQ(state[8], 400);
  collector_.OpenIteration(3);
  const v1::Ticket again = TakeTicket(0), on = TakeTicket(1);
  EXPECT_EQ(*reinterpret_cast<const double*>(again.env_state().data().data()), 200);
  EXPECT_EQ(*reinterpret_cast<const double*>(on.env_state().data().data()), 400);
}

TEST_F(ShortfallTest, AGroupThatNeverFinishedBeginsEpisodeZeroAgain) {
  collector_.OpenIteration(1);
  ServeGroup(0, 100);
  ASSERT_TRUE(collector_.TakeWhatIsThere());
  collector_.OpenIteration(2);
  EXPECT_FALSE(TakeTicket(0).has_env_state());
}

TEST_F(ShortfallTest, ACompleteIterationIsTakenWhole) {
  collector_.OpenIteration(1);
  for (uint32_t group : {0, 1}) {
    ServeGroup(group, 100);
    ServeGroup(group, 200);
  }
  const auto iteration = collector_.TakeWhatIsThere();
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->batch->columns(), 4);
  EXPECT_TRUE(iteration->state);
  EXPECT_EQ(collector_.account().stale(), 0u);
}

TEST_F(ShortfallTest, TheBatchThatIsTrainedOnStaysWhileTheNextEndsShort) {
  collector_.OpenIteration(1);
  for (uint32_t group : {0, 1}) {
    ServeGroup(group, 100);
    ServeGroup(group, 200);
  }
  const auto first = Take();
  ASSERT_TRUE(first);
  collector_.OpenIteration(1);  // Overlapped: before the first is trained on.
  ServeGroup(0, 700);
  ServeGroup(0, 800);
  collector_.Trained(4 * kFragmentSteps);
  const auto second = collector_.TakeWhatIsThere();
  ASSERT_TRUE(second);
  EXPECT_NE(second->batch, first->batch);
  EXPECT_EQ(second->batch->values<float>("obs")[0], 700);
  EXPECT_EQ(first->batch->values<float>("obs")[0], 100);
  collector_.OpenIteration(2);
  for (uint32_t group : {0, 1}) {
    ServeGroup(group, 900);
    ServeGroup(group, 950);
  }
  const auto third = Take();
  ASSERT_TRUE(third);
  EXPECT_EQ(third->batch, first->batch);
  EXPECT_EQ(third->batch->columns(), 4);
  EXPECT_EQ(second->batch->columns(), 2);
}

TEST_F(ShortfallTest, AfterStopThereIsNothingToTake) {
  collector_.OpenIteration(1);
  ServeGroup(0, 100);
  collector_.Stop();
  EXPECT_FALSE(collector_.TakeWhatIsThere());
  EXPECT_EQ(collector_.waiting(), absl::ZeroDuration());
}

TEST_F(ShortfallTest, WaitsForDataThatAreOwed) {
  EXPECT_EQ(collector_.waiting(), absl::ZeroDuration());
  collector_.OpenIteration(1);
  ServeGroup(0, 100);
  const absl::Duration before = collector_.waiting();
  EXPECT_GT(before, absl::ZeroDuration());
  ASSERT_TRUE(collector_.TakeWhatIsThere());
  EXPECT_GT(collector_.waiting(), before);  // They are owed still.
  collector_.OpenIteration(2);
  EXPECT_GT(collector_.waiting(), before);
  for (uint32_t group : {0, 1}) {
    ServeGroup(group, 100);
    ServeGroup(group, 200);
  }
  EXPECT_EQ(collector_.waiting(), absl::ZeroDuration());
  ASSERT_TRUE(Take());
  EXPECT_EQ(collector_.waiting(), absl::ZeroDuration());
  collector_.OpenIteration(3);
  EXPECT_GT(collector_.waiting(), absl::ZeroDuration());
}

// Fragments arrive from two threads while iterations end; every accepted one is whole in a batch, or stale.
TEST_F(ShortfallTest, IterationsEndWhileFragmentsArrive) {
  uint64_t trained = 0;
  for (int iteration = 1; iteration <= 50; ++iteration) {
    Open(kAda, 2);
    collector_.OpenIteration(iteration);
    const auto grants = collector_.TakeGrants();
    ASSERT_THAT(grants, SizeIs(2));
    std::vector<SampleFragment> fragments;
    for (const auto& [actor, ticket] : grants) fragments.push_back(Serve(kAda, ticket, 100));
    std::thread deliverer([&] {
      for (const auto& fragment : fragments) collector_.Receive(kAda, ReceivedFragment(fragment).frame(), 1);
    });
    const auto taken = collector_.TakeWhatIsThere();
    deliverer.join();
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->batch->columns(), 0);  // Each group has one of its two fragments at most.
    trained += taken->batch->steps() * taken->batch->share_envs();
    collector_.Trained(taken->batch->steps() * taken->batch->share_envs());
    ExpectBalance();
  }
  EXPECT_EQ(collector_.account().collected(), 100 * kFragmentSteps);
  EXPECT_EQ(collector_.account().stale(), 100 * kFragmentSteps);
  EXPECT_EQ(trained, 0u);
}

// The second of two ranks with three groups: environments 4 and 5 of six.
Collector::Options SecondShare(Collector::Options options) {
  options.first_env = 4;
  options.share_envs = 2;
  options.rank = 1;
  options.ranks = 2;
  options.first_ticket_id = 100;
  return options;
}
class ShareTest : public CollectorTest {
 protected:
  ShareTest() : CollectorTest(SecondShare(MakeOptions())) {}
};

TEST_F(ShareTest, TicketsHaveRunWideEnvironments) {
  Open(kAda);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  ASSERT_THAT(grants, SizeIs(1));
  EXPECT_EQ(grants[0].second.first_env(), 4u);
  EXPECT_EQ(grants[0].second.id(), 101u);  // The first from 100 on that is 1 modulo 2.
  SampleFragment elsewhere = Serve(kAda, grants[0].second);
  elsewhere.header.set_first_env(0);
  EXPECT_EQ(Deliver(kAda, elsewhere), v1::RECEIPT_RESULT_REJECTED);
  EXPECT_EQ(Deliver(kAda, Serve(kAda, grants[0].second)), v1::RECEIPT_RESULT_ACCEPTED);
  const auto iteration = Take();
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->batch->share_envs(), 2);
  EXPECT_EQ(iteration->state->env_state->shape(0), 2);
  collector_.OpenIteration(2);
  EXPECT_EQ(collector_.TakeGrants().at(0).second.id(), 103u);
}

TEST_F(ShareTest, AnotherRanksTicketIsStaleHere) {
  Open(kAda);
  collector_.OpenIteration(1);
  v1::Ticket ticket = collector_.TakeGrants().at(0).second;
  ticket.set_id(100);
  EXPECT_EQ(Deliver(kAda, Serve(kAda, ticket)), v1::RECEIPT_RESULT_STALE);
}

// What an actor did for another rank is in that one's account.
TEST_F(ShareTest, AnActorThatWasAwayAndComesBackCountsWhatItBringsHere) {
  Open(kAda);
  collector_.OpenIteration(1);
  ASSERT_EQ(Deliver(kAda, Serve(kAda, collector_.TakeGrants().at(0).second)), v1::RECEIPT_RESULT_ACCEPTED);
  ASSERT_TRUE(Take());
  collector_.Disconnect(kAda);
  works_[kAda].sequence += 10;
  works_[kAda].collected += 10 * kFragmentSteps;
  Open(kAda);
  collector_.OpenIteration(2);
  ASSERT_EQ(Deliver(kAda, Serve(kAda, collector_.TakeGrants().at(0).second)), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_EQ(collector_.account().collected(), 2 * kFragmentSteps);
  EXPECT_EQ(collector_.account().pending(), 2 * kFragmentSteps);
}

}  // namespace
}  // namespace skein
