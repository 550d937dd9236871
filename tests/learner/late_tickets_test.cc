// SPDX-License-Identifier: Apache-2.0
// The ticket office's sense of time, and its asynchronous side.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learner/ticket_office_grants.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// Serves `ticket` by `actor` in `seconds`, as measured from zero.
void ServeIn(TicketOffice* office, const ConnectionId& actor, uint64_t ticket, double seconds) {
  const auto piece = office->Accept(actor, ticket, absl::Seconds(seconds));
  ASSERT_TRUE(piece);
  office->Commit(piece->group, State(std::string(8, 'x'), 1));
}

// Both have served a ticket, so that it is known how long they take; the second iteration's two are open.
TicketOffice AdaTookASecondAndBob(double seconds) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.AddActor(kBob, 1, 1);
  office.OpenIteration(1);
  EXPECT_EQ(office.Grant(kNow).size(), 2u);
  ServeIn(&office, kAda, 1, 1.0);
  ServeIn(&office, kBob, 2, seconds);
  office.EndIteration();
  office.OpenIteration(2);
  return office;
}

TEST(TicketOffice, ALateTicketGoesToASecondActor) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.AddActor(kBob, 1, 1);
  office.OpenIteration(1);
  ASSERT_EQ(office.Grant(kNow).size(), 2u);  // Ada has 1, bob has 2.
  ServeIn(&office, kAda, 1, 1.0);
  EXPECT_THAT(office.Grant(absl::Seconds(1.9)), IsEmpty());  // Bob may need as long as twice what ada did.
  const Grants late = office.Grant(absl::Seconds(2.1));
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].first, kAda);
  EXPECT_EQ(late[0].second.id(), 2u);
  EXPECT_THAT(office.Grant(absl::Seconds(9)), IsEmpty());  // Nobody else is idle.
  ServeIn(&office, kAda, 2, 3.1);
  EXPECT_TRUE(office.groups().complete());
  EXPECT_FALSE(office.Accept(kBob, 2, absl::Seconds(10)));
}

TEST(TicketOffice, AnActorKnownToBeSlowDoesNotHoldUpTheIteration) {
  TicketOffice office = AdaTookASecondAndBob(10.0);
  // Ada alone needs 2 s for both tickets, bob 10 s for one.
  Grants grants = office.Grant(absl::Seconds(10));
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].first, kAda);
  ServeIn(&office, kAda, grants[0].second.id(), 11.0);
  grants = office.Grant(absl::Seconds(11));
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].first, kAda);
  ServeIn(&office, kAda, grants[0].second.id(), 12.0);
  EXPECT_TRUE(office.groups().complete());
  // Long after bob is given what ada works on, to see how long he takes now.
  office.EndIteration();
  office.OpenIteration(3);
  grants = office.Grant(absl::Seconds(211));
  EXPECT_THAT(CountByActor(grants), ElementsAre(Pair("ada", 1), Pair("bob", 1)));
  EXPECT_EQ(grants[0].second.id(), grants[1].second.id());
}

TEST(TicketOffice, ASlowActorIsTriedAgainAfterTenSecondsAtTheLatest) {
  TicketOffice office = AdaTookASecondAndBob(10.0);  // 20 times that would be 200 s.
  const Grants before = office.Grant(absl::Seconds(19.8));
  ASSERT_THAT(CountByActor(before), ElementsAre(Pair("ada", 1)));
  const Grants trial = office.Grant(absl::Seconds(20.2));
  ASSERT_THAT(CountByActor(trial), ElementsAre(Pair("bob", 1)));
  EXPECT_EQ(trial[0].second.id(), before[0].second.id());
}

// One good trial, and it gets its tickets as before, be it that another was faster with that one.
TEST(TicketOffice, ASlowActorThatIsFastAgainIsBelievedAtOnce) {
  TicketOffice office = AdaTookASecondAndBob(10.0);
  const Grants before = office.Grant(absl::Seconds(20));
  ASSERT_EQ(before.size(), 1u);
  const Grants trial = office.Grant(absl::Seconds(20.2));
  ASSERT_THAT(CountByActor(trial), ElementsAre(Pair("bob", 1)));
  ServeIn(&office, kAda, before[0].second.id(), 21.0);
  EXPECT_FALSE(office.Accept(kBob, trial[0].second.id(), absl::Seconds(21.2)));
  const Grants last = office.Grant(absl::Seconds(21.2));
  ASSERT_EQ(last.size(), 1u);
  ServeIn(&office, last[0].first, last[0].second.id(), 22.2);
  EXPECT_TRUE(office.groups().complete());
  office.EndIteration();
  office.OpenIteration(3);
  EXPECT_THAT(CountByActor(office.Grant(absl::Seconds(23))), ElementsAre(Pair("ada", 1), Pair("bob", 1)));
}

TEST(TicketOffice, ASlowActorWorksWhereTheOthersWouldNeedAsLong) {
  TicketOffice office = MakeOffice(40, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.AddActor(kBob, 1, 1);
  office.OpenIteration(1);
  office.Grant(kNow);
  ServeIn(&office, kAda, 1, 1.0);
  ServeIn(&office, kBob, 2, 10.0);
  // 38 tickets are left, for which ada needs 38 s.
  EXPECT_THAT(CountByActor(office.Grant(absl::Seconds(10))), ElementsAre(Pair("ada", 1), Pair("bob", 1)));
}

TEST(TicketOffice, AVoidTicketThatNeverComesBackIsForgotten) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.AddActor(kBob, 1, 1);
  office.OpenIteration(1);
  office.Grant(kNow);
  ServeIn(&office, kAda, 1, 1.0);
  office.Grant(absl::Seconds(3));
  ServeIn(&office, kAda, 2, 4.0);  // Bob still holds ticket 2, or has dropped it.
  office.EndIteration();
  office.OpenIteration(2);
  EXPECT_THAT(CountByActor(office.Grant(absl::Seconds(5))), ElementsAre(Pair("ada", 1)));
  EXPECT_THAT(office.Grant(absl::Seconds(12)), IsEmpty());  // It is forgotten now, and bob waits for a second.
  EXPECT_THAT(CountByActor(office.Grant(absl::Seconds(13))), ElementsAre(Pair("bob", 1)));
}

TEST(TicketOffice, AVoidTicketOfASlowActorIsForgottenAfterTwiceItsUsualTime) {
  TicketOffice office = AdaTookASecondAndBob(7.0);
  // Bob's trial is void when ada has served both, and he has dropped it.
  Grants grants = office.Grant(absl::Seconds(18));
  ASSERT_THAT(CountByActor(grants), ElementsAre(Pair("ada", 1), Pair("bob", 1)));
  ServeIn(&office, kAda, 3, 19.0);
  ASSERT_THAT(CountByActor(office.Grant(absl::Seconds(19))), ElementsAre(Pair("ada", 1)));
  ServeIn(&office, kAda, 4, 20.0);
  office.EndIteration();
  office.OpenIteration(3);
  ASSERT_THAT(CountByActor(office.Grant(absl::Seconds(29.8))), ElementsAre(Pair("ada", 1)));
  EXPECT_THAT(office.Grant(absl::Seconds(31.9)), IsEmpty());
  EXPECT_THAT(CountByActor(office.Grant(absl::Seconds(32.1))), ElementsAre(Pair("bob", 1)));  // After 2 x 7 s.
}

// It is not held against an actor that another was faster with what it is late with, unless it never comes.
TEST(TicketOffice, WhoIsLateWithAVoidTicketKeepsItsCredits) {
  for (const bool answers : {true, false}) {
    TicketOffice office = MakeOffice(4, 1, 1, 1);
    office.AddActor(kAda, 2, 2);
    office.AddActor(kBob, 2, 2);
    office.OpenIteration(1);
    office.Grant(kNow);
    for (const uint64_t ticket : {1, 3}) ServeIn(&office, kAda, ticket, 7.0);
    ServeIn(&office, kBob, 2, 7.0);
    // Bob's second one is late, and ada is faster.
    ASSERT_THAT(CountByActor(office.Grant(absl::Seconds(14.1))), ElementsAre(Pair("ada", 1)));
    ServeIn(&office, kAda, 4, 21.0);
    office.EndIteration();
    if (answers) {
      EXPECT_FALSE(office.Accept(kBob, 4, absl::Seconds(25)));
    }
    // At 71 s he has had ten times as long as they need.
    office.OpenIteration(2);
    std::map<std::string, int> counts = CountByActor(office.Grant(absl::Seconds(71)));
    EXPECT_EQ(counts["ada"], 2) << answers;
    EXPECT_EQ(counts["bob"], answers ? 2 : 0);
  }
}

// What is void because the iteration ended without it stays in its holder's hand until that answers, or until the next
// iteration ends.
TEST(TicketOffice, AnEndedIterationsTicketsStayInHand) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.OpenIteration(1);
  ASSERT_EQ(office.Grant(kNow).size(), 1u);
  EXPECT_THAT(office.EndIteration(), IsEmpty());
  EXPECT_TRUE(office.groups().complete());
  EXPECT_THAT(office.Holders(), IsEmpty());
  office.OpenIteration(2);
  EXPECT_THAT(office.Grant(kNow), IsEmpty());
  EXPECT_FALSE(office.Accept(kAda, 1, absl::Seconds(1)));
  EXPECT_EQ(office.Grant(absl::Seconds(1)).size(), 1u);
  // It never answers that one: the policy was gone before it got round to it.
  EXPECT_THAT(office.EndIteration(), IsEmpty());
  office.OpenIteration(3);
  EXPECT_THAT(office.Grant(absl::Seconds(1)), IsEmpty());
  EXPECT_THAT(office.EndIteration(), IsEmpty());
  office.OpenIteration(4);
  EXPECT_EQ(office.Grant(absl::Seconds(1)).size(), 1u);
}

TEST(TicketOffice, OpenTicketsPrefersWhoWasServedLeast) {
  TicketOffice office = MakeOffice(3, 1, 1, 1);
  office.AddActor(kAda, 3, 3);
  EXPECT_EQ(office.OpenTickets(2), 2u);  // Groups 0 and 1.
  EXPECT_EQ(office.groups().open_tickets(), 2u);
  for (const auto& [actor, ticket] : office.Grant(kNow)) {
    EXPECT_EQ(ticket.policy_version(), 0u);
    ServeIn(&office, kAda, ticket.id(), 1);
  }
  EXPECT_TRUE(office.groups().complete());
  EXPECT_EQ(office.OpenTickets(2), 2u);  // Group 2, then 0.
  const Grants grants = office.Grant(kNow);
  ASSERT_EQ(grants.size(), 2u);
  EXPECT_EQ(grants[0].second.first_env() + grants[1].second.first_env(), 2u);
  EXPECT_EQ(office.OpenTickets(9), 1u);  // Groups with a ticket get no second one.
}

TEST(TicketOffice, AsynchronousTicketsHaveOneHolderUntilItIsLongOverdue) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.AddActor(kBob, 1, 1);
  office.OpenTickets(2);
  office.Grant(kNow);
  ServeIn(&office, kAda, 1, 1.0);
  EXPECT_THAT(office.Grant(absl::Seconds(10)), IsEmpty());
  EXPECT_THAT(CountByActor(office.Grant(absl::Seconds(10.1))), ElementsAre(Pair("ada", 1)));
}

// With one runner and more groups, each group has its turn.
TEST(TicketOffice, NoGroupStarvesWhileOthersAreOpenedAgain) {
  TicketOffice office = MakeOffice(3, 1, 1, 1);
  office.AddActor(kAda, 2, 1);
  std::map<uint32_t, int> served;
  for (int i = 0; i < 30; ++i) {
    office.OpenTickets(3);
    for (const auto& [actor, ticket] : office.Grant(kNow)) {
      ++served[ticket.first_env()];
      ServeIn(&office, actor, ticket.id(), 0);
    }
  }
  ASSERT_EQ(served.size(), 3u);
  for (const auto& [first_env, times] : served) EXPECT_GE(times, 10) << first_env;
}

TEST(TicketOffice, ARefusedAnswerSaysNothingAboutSpeed) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.AddActor(kBob, 1, 1);
  office.OpenIteration(1);
  ASSERT_EQ(office.Grant(kNow).size(), 2u);
  office.Refuse(kAda, 1);  // At once.
  ServeIn(&office, kBob, 2, 1.0);
  // Nothing is known of ada, so bob's second is the fastest there is; her ticket is hers again, or his.
  EXPECT_EQ(office.Grant(absl::Seconds(1)).size(), 1u);
  EXPECT_THAT(office.Grant(absl::Seconds(2)), IsEmpty());
}

}  // namespace
}  // namespace skein
