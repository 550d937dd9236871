// SPDX-License-Identifier: Apache-2.0
// Ranks come and go: a collector that gets another share of the environments.
#include "gmock/gmock.h"
#include "tests/learner/collector_fixture.h"

namespace skein {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// As CollectorTest: environments 0 to 3 in two groups of two, of a run of eight.
class TakeShareTest : public CollectorTest {
 protected:
  static Collector::Share LastFour() {
    Collector::Share share;
    share.first_env = 4;
    share.share_envs = 4;
    return share;
  }
};

TEST_F(TakeShareTest, TicketsAreOfTheNewEnvironmentsAndActorsStay) {
  Open(kAda, 4);
  collector_.OpenIteration(1);
  EXPECT_THAT(collector_.TakeGrants(), SizeIs(2));
  Collector::Share all = LastFour();
  all.first_env = 0;
  all.share_envs = 8;
  collector_.TakeShare(all);
  EXPECT_THAT(collector_.TakeGrants(), IsEmpty());  // Nothing is open yet.
  collector_.OpenIteration(1);
  ServeIteration();
  const auto iteration = Take();
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->batch->share_envs(), 8);
  collector_.TakeShare(LastFour());
  collector_.OpenIteration(2);
  for (const auto& [actor, ticket] : collector_.TakeGrants()) EXPECT_GE(ticket.first_env(), 4u);
}

TEST_F(TakeShareTest, WhatWasNotTrainedOnIsLostAndOldTicketsAreVoid) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  ASSERT_THAT(grants, SizeIs(2));
  EXPECT_EQ(Deliver(kAda, Serve(kAda, grants[0].second)), v1::RECEIPT_RESULT_ACCEPTED);
  collector_.TakeShare(LastFour());
  EXPECT_EQ(collector_.account().lost(), kFragmentSteps);
  EXPECT_EQ(collector_.account().pending(), 0u);
  EXPECT_EQ(collector_.queued_fragments(), 0u);
  collector_.OpenIteration(1);
  EXPECT_EQ(Deliver(kAda, Serve(kAda, grants[1].second)), v1::RECEIPT_RESULT_STALE);
  ServeIteration();
  EXPECT_TRUE(Take());
  collector_.Trained(2 * kFragmentSteps);
  EXPECT_EQ(collector_.account().trained(), 2 * kFragmentSteps);
  ExpectBalance();
}

TEST_F(TakeShareTest, AlsoWhatTheTrainerHadIsLostUnlessItSaysOtherwise) {
  for (const bool trained : {false, true}) {
    Open(kAda, 2);
    collector_.OpenIteration(1);
    ServeIteration();
    ASSERT_TRUE(Take());
    const v1::StepAccount before = collector_.account();
    if (trained) collector_.Trained(2 * kFragmentSteps);
    collector_.TakeShare(LastFour());
    EXPECT_EQ(collector_.account().lost() - before.lost(), trained ? 0u : 2 * kFragmentSteps);
    ExpectBalance();
  }
}

TEST_F(TakeShareTest, EnvironmentsContinueFromTheStateThatIsGiven) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  ServeIteration();
  const auto iteration = Take();
  ASSERT_TRUE(iteration && iteration->state);
  Collector::Share share = LastFour();
  share.state = *iteration->state;
  collector_.TakeShare(share);
  collector_.OpenIteration(2);
  for (const auto& [actor, ticket] : collector_.TakeGrants()) EXPECT_TRUE(ticket.has_env_state());
}

TEST(AsyncTakeShare, AnIterationHasTheNewNumberOfFragments) {
  prometheus::Registry registry;
  LearnerMetrics metrics(&registry);
  Collector::Options options;
  options.run_id = "run";
  options.shape = MakeSampleShape({});
  options.share_envs = 4;
  options.async = Collector::Async{2, 4};
  Collector collector(options, &metrics);
  collector.OpenIteration(1);
  Collector::Share share;
  share.share_envs = 8;
  share.async_fragments = 4;
  collector.TakeShare(share);
  collector.OpenIteration(1);
  const auto iteration = collector.TakeWhatIsThere();
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->batch->columns(), 0);
}

}  // namespace
}  // namespace skein
