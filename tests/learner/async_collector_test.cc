// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "gmock/gmock.h"
#include "tests/learner/collector_fixture.h"

namespace skein {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

Collector::Options AsyncOptions(Collector::Options options) {
  options.async = Collector::Async{2, 2};  // Two fragments an iteration, at most two versions old.
  return options;
}

// As CollectorTest: four environments in two groups.
class AsyncCollectorTest : public CollectorTest {
 protected:
  AsyncCollectorTest() : CollectorTest(AsyncOptions(MakeOptions())) {}

  // The only ticket that can be granted now.
  v1::Ticket TakeTicket() {
    const auto grants = collector_.TakeGrants();
    EXPECT_THAT(grants, SizeIs(1));
    return grants.empty() ? v1::Ticket() : grants[0].second;
  }
  SampleFragment ServeWith(const v1::Ticket& ticket, uint64_t policy_version, float offset = 0) {
    SampleFragment fragment = Serve(kAda, ticket, offset);
    fragment.header.set_policy_version(policy_version);
    return fragment;
  }
};

TEST_F(AsyncCollectorTest, AnIterationIsWhateverComesFirst) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  ASSERT_THAT(grants, SizeIs(2));
  EXPECT_EQ(grants[0].second.policy_version(), 0u);
  // Group 1 is served twice before group 0: the iteration is made of its two fragments.
  ASSERT_EQ(Deliver(kAda, ServeWith(grants[1].second, 1, 100)), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_FALSE(Take());
  const v1::Ticket again = TakeTicket();
  EXPECT_EQ(again.first_env(), 2u);
  EXPECT_TRUE(again.has_env_state());
  ASSERT_EQ(Deliver(kAda, ServeWith(again, 1, 200)), v1::RECEIPT_RESULT_ACCEPTED);
  const auto iteration = Take();
  ASSERT_TRUE(iteration);
  // Rows of [T, M = 2 fragments x 2 environments]: the first fragment's columns, then the second's.
  EXPECT_EQ(iteration->batch->steps(), 2);
  EXPECT_EQ(iteration->batch->columns(), 4);
  EXPECT_EQ(iteration->batch->values<float>("obs")[0], 100);
  EXPECT_EQ(iteration->batch->values<float>("obs")[2 * 3], 200);
  EXPECT_EQ(iteration->policy_version, 1u);
  EXPECT_FALSE(iteration->state);  // Group 0 has not been served.
}

TEST_F(AsyncCollectorTest, ReportsTheOldestPolicy) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  ASSERT_EQ(Deliver(kAda, ServeWith(grants[0].second, 1)), v1::RECEIPT_RESULT_ACCEPTED);
  collector_.OpenIteration(2);
  ASSERT_EQ(Deliver(kAda, ServeWith(grants[1].second, 2)), v1::RECEIPT_RESULT_ACCEPTED);
  const auto iteration = Take();
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->policy_version, 1u);
  EXPECT_EQ(iteration->state->env_state->shape(0), 4);
}

TEST_F(AsyncCollectorTest, WhatWouldBeTooOldIsStaleAndItsGroupGoesOn) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  collector_.OpenIteration(4);  // Three versions later; two are allowed.
  EXPECT_EQ(Deliver(kAda, ServeWith(grants[0].second, 1)), v1::RECEIPT_RESULT_STALE);
  EXPECT_EQ(collector_.account().stale(), kFragmentSteps);
  EXPECT_EQ(TakeTicket().first_env(), 0u);
  EXPECT_EQ(Deliver(kAda, ServeWith(grants[1].second, 2)), v1::RECEIPT_RESULT_ACCEPTED);
}

TEST_F(AsyncCollectorTest, WhatWaitsAheadCountsAsAge) {
  Open(kAda, 2);
  collector_.OpenIteration(3);
  for (const auto& [actor, ticket] : collector_.TakeGrants()) Deliver(kAda, ServeWith(ticket, 3));
  ASSERT_TRUE(Take());  // The trainer makes version 4 of it.
  const auto grants = collector_.TakeGrants();
  ASSERT_THAT(grants, SizeIs(2));
  EXPECT_EQ(Deliver(kAda, ServeWith(grants[0].second, 1)), v1::RECEIPT_RESULT_STALE);     // 4 - 1 > 2
  EXPECT_EQ(Deliver(kAda, ServeWith(grants[1].second, 2)), v1::RECEIPT_RESULT_ACCEPTED);  // 4 - 2 = 2
}

TEST_F(AsyncCollectorTest, APolicyCountsFromItsPublicationOn) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  for (const auto& [actor, ticket] : collector_.TakeGrants()) Deliver(kAda, ServeWith(ticket, 1));
  ASSERT_TRUE(Take());
  const auto grants = collector_.TakeGrants();
  collector_.Published(2);  // The trainer still has its batch, and logs and saves before it opens the next iteration.
  EXPECT_EQ(Deliver(kAda, ServeWith(grants[0].second, 2)), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_EQ(Deliver(kAda, ServeWith(grants[1].second, 3)), v1::RECEIPT_RESULT_STALE);
}

TEST_F(AsyncCollectorTest, AnUnusableFragmentsPlaceIsTakenByTheNext) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  SampleFragment bad = ServeWith(grants[0].second, 1, 100);
  SetElement(bad.Find("obs"), 4, std::numeric_limits<float>::infinity());
  EXPECT_EQ(Deliver(kAda, bad), v1::RECEIPT_RESULT_REJECTED);
  EXPECT_EQ(collector_.account().rejected(), kFragmentSteps);
  EXPECT_EQ(Deliver(kAda, ServeWith(grants[1].second, 1, 200)), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_FALSE(Take());
  const auto again = collector_.TakeGrants();
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(Deliver(kAda, ServeWith(again[0].second, 1, 300)), v1::RECEIPT_RESULT_ACCEPTED);
  const auto iteration = Take();
  ASSERT_TRUE(iteration);
  EXPECT_EQ(iteration->batch->values<float>("obs")[0] + iteration->batch->values<float>("obs")[2 * 3], 500);
}

TEST_F(AsyncCollectorTest, APolicyThatDoesNotExistYetIsStale) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  EXPECT_EQ(Deliver(kAda, ServeWith(grants[0].second, 2)), v1::RECEIPT_RESULT_STALE);
}

// Three stagings of two fragments: one with the trainer leaves room for four, then tickets wait for it.
TEST_F(AsyncCollectorTest, TicketsWaitForRoom) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  int accepted = 0;
  const auto serve = [&](uint64_t version) {
    for (auto grants = collector_.TakeGrants(); !grants.empty(); grants = collector_.TakeGrants()) {
      for (const auto& [actor, ticket] : grants) {
        EXPECT_EQ(Deliver(kAda, ServeWith(ticket, version)), v1::RECEIPT_RESULT_ACCEPTED);
        ++accepted;
      }
    }
  };
  serve(1);
  EXPECT_EQ(accepted, 6);
  ASSERT_TRUE(Take());
  collector_.Trained(2 * kFragmentSteps);
  EXPECT_THAT(collector_.TakeGrants(), IsEmpty());
  collector_.OpenIteration(2);
  serve(2);
  EXPECT_EQ(accepted, 8);
  EXPECT_EQ(collector_.queued_fragments(), 6u);
  EXPECT_EQ(collector_.account().trained(), 2 * kFragmentSteps);
}

TEST_F(AsyncCollectorTest, TakesTheFragmentsThatAreThere) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  ASSERT_EQ(Deliver(kAda, ServeWith(grants[1].second, 1, 100)), v1::RECEIPT_RESULT_ACCEPTED);
  const auto partial = collector_.TakeWhatIsThere();
  ASSERT_TRUE(partial);
  EXPECT_EQ(partial->batch->columns(), 2);
  EXPECT_EQ(partial->batch->values<float>("obs")[0], 100);
  collector_.Trained(kFragmentSteps);
  EXPECT_EQ(collector_.queued_fragments(), 0u);
  // The other ticket is open still, and its fragment the next iteration's first.
  EXPECT_EQ(Deliver(kAda, ServeWith(grants[0].second, 1, 200)), v1::RECEIPT_RESULT_ACCEPTED);
  collector_.OpenIteration(2);
  EXPECT_EQ(Deliver(kAda, ServeWith(collector_.TakeGrants().at(0).second, 2, 300)), v1::RECEIPT_RESULT_ACCEPTED);
  const auto whole = Take();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->batch->columns(), 4);
  EXPECT_EQ(whole->batch->values<float>("obs")[0], 200);
  EXPECT_EQ(whole->batch->values<float>("obs")[2 * 3], 300);
  EXPECT_EQ(collector_.account().stale(), 0u);
}

TEST_F(AsyncCollectorTest, TakesNothingWhereNothingCame) {
  collector_.OpenIteration(1);
  for (uint64_t version : {1, 2, 3, 4, 5}) {
    const auto nothing = collector_.TakeWhatIsThere();
    ASSERT_TRUE(nothing);
    EXPECT_EQ(nothing->batch->columns(), 0);
    EXPECT_EQ(nothing->policy_version, version);
    collector_.Trained(0);
    collector_.OpenIteration(version + 1);
  }
}

TEST_F(AsyncCollectorTest, APlaceThatWasGivenUpIsNotTaken) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  SampleFragment bad = ServeWith(collector_.TakeGrants().at(0).second, 1, 100);
  SetElement(bad.Find("obs"), 4, std::numeric_limits<float>::infinity());
  EXPECT_EQ(Deliver(kAda, bad), v1::RECEIPT_RESULT_REJECTED);
  const auto nothing = collector_.TakeWhatIsThere();
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->batch->columns(), 0);
}

TEST_F(AsyncCollectorTest, StopVoidsTickets) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  collector_.Stop();
  EXPECT_EQ(Deliver(kAda, ServeWith(grants[0].second, 1)), v1::RECEIPT_RESULT_STALE);
  EXPECT_FALSE(Take());
  EXPECT_THAT(collector_.TakeGrants(), IsEmpty());
}

}  // namespace
}  // namespace skein
