// SPDX-License-Identifier: Apache-2.0
// Actors that take tickets and do not serve them.
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/collect/actor_standing.h"
#include "tests/learner/ticket_office_grants.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr uint32_t kManyRunners = uint32_t{1} << 31;
constexpr uint32_t kManyCredits = std::numeric_limits<uint32_t>::max();

void ServeAt(TicketOffice* office, const ConnectionId& actor, uint64_t ticket, double seconds) {
  const auto piece = office->Accept(actor, ticket, absl::Seconds(seconds));
  ASSERT_TRUE(piece);
  office->Commit(piece->group, State(std::string(8, 'x'), 1));
}

// Ada has taken all of four tickets and serves none; bob, who has one runner, comes after her.
TicketOffice AllInAdasHands(bool async) {
  TicketOffice office = MakeOffice(4, 1, 1, 1);
  office.AddActor(kAda, kManyCredits, kManyRunners);
  if (async) {
    office.OpenTickets(4);
  } else {
    office.OpenIteration(1);
  }
  EXPECT_THAT(office.Grant(kNow), SizeIs(4));
  office.AddActor(kBob, 2, 1);
  return office;
}

// After 5 s, in no time: now ada's tickets are overdue.
void LetBobServeOne(TicketOffice* office) {
  const Grants grants = office->Grant(absl::Seconds(5.05));
  ASSERT_THAT(CountByActor(grants), ElementsAre(Pair("bob", 1)));
  ServeAt(office, kBob, grants[0].second.id(), 5.06);
}

TEST(UnservedTickets, AHelloIsTakenWithinLimits) {
  // 3 x 1,024 tickets: one for each of 1,024 runners, and another while more are left than runners, so 2 x 1,024.
  TicketOffice office = MakeOffice(3 * ActorRecord::kMostRunners, 1, 1, 1);
  office.AddActor(kAda, kManyCredits, kManyRunners);
  office.OpenIteration(1);
  EXPECT_THAT(office.Grant(kNow), SizeIs(2 * ActorRecord::kMostRunners));
  // One runner cannot hold more than two, nor can one that says it has none.
  for (uint32_t runners : {0, 1}) {
    TicketOffice other = MakeOffice(9, 1, 1, 1);
    other.AddActor(kBob, kManyCredits, runners);
    other.OpenIteration(1);
    EXPECT_THAT(other.Grant(kNow), SizeIs(2));
  }
}

TEST(UnservedTickets, GoToOthersInEveryMode) {
  for (const bool async : {false, true}) {
    TicketOffice office = AllInAdasHands(async);
    // While nothing is known of anybody's speed, who is idle gets one as well after 5 s.
    EXPECT_THAT(office.Grant(absl::Seconds(5)), IsEmpty());
    Grants grants = office.Grant(absl::Seconds(5.1));
    ASSERT_THAT(CountByActor(grants), ElementsAre(Pair("bob", 1)));
    EXPECT_THAT(office.Holders(), ElementsAre(Pair(kAda, 4u), Pair(kBob, 1u)));
    ServeAt(&office, kBob, grants[0].second.id(), 5.2);
    // Now it is known how long one takes, and ada's are overdue.
    grants = office.Grant(absl::Seconds(5.2));
    ASSERT_THAT(CountByActor(grants), ElementsAre(Pair("bob", 2)));
    // For people it is ada still who owes the one that bob has not got.
    EXPECT_THAT(office.Holders(), ElementsAre(Pair(kAda, 1u), Pair(kBob, 2u)));
    for (; !grants.empty(); grants = office.Grant(absl::Seconds(5.2))) {
      for (const auto& [actor, ticket] : grants) {
        ASSERT_EQ(actor, kBob);
        ServeAt(&office, kBob, ticket.id(), 5.2);
      }
    }
    EXPECT_TRUE(office.groups().complete()) << async;
  }
}

// Fragments of an environment that is slow, or long ones.
TEST(UnservedTickets, NobodyIsBlamedForTheFirstOnesWhileNothingIsKnown) {
  TicketOffice office = MakeOffice(4, 1, 1, 1);
  office.AddActor(kAda, 3, 2);
  office.AddActor(kBob, 3, 2);
  office.OpenIteration(1);
  std::map<uint64_t, ConnectionId> granted;
  for (const auto& [actor, ticket] : office.Grant(kNow)) granted[ticket.id()] = actor;
  ASSERT_THAT(granted, SizeIs(4));
  for (const double now : {5.1, 30.0, 59.0}) EXPECT_THAT(office.Grant(absl::Seconds(now)), IsEmpty()) << now;
  for (const auto& [ticket, actor] : granted) {
    ServeAt(&office, actor, ticket, 59);
    EXPECT_THAT(office.Grant(absl::Seconds(59)), IsEmpty());
  }
  office.OpenIteration(2);
  EXPECT_THAT(CountByActor(office.Grant(absl::Seconds(59))), ElementsAre(Pair("ada", 2), Pair("bob", 2)));
}

TEST(UnservedTickets, NobodyIsBlamedHoweverLongTheFirstOnesTake) {
  TicketOffice office = MakeOffice(4, 1, 1, 1);
  office.AddActor(kAda, 5, 4);
  office.OpenIteration(1);
  const Grants grants = office.Grant(kNow);
  ASSERT_THAT(grants, SizeIs(4));
  for (int now = 1; now <= 100; ++now) EXPECT_THAT(office.Grant(absl::Seconds(now)), IsEmpty()) << now;
  for (const auto& [actor, ticket] : grants) ServeAt(&office, kAda, ticket.id(), 100);
  office.OpenIteration(2);
  EXPECT_THAT(office.Grant(absl::Seconds(100)), SizeIs(4));
}

// Alf has a place for all, and a name that comes before bob's.
TEST(UnservedTickets, WhoTakesAllAndNeverAnswersKeepsNobodyFromItsFirst) {
  for (const bool async : {false, true}) {
    TicketOffice office = AllInAdasHands(async);
    const ConnectionId alf{"alf", 1};
    office.AddActor(alf, kManyCredits, kManyRunners);
    EXPECT_THAT(CountByActor(office.Grant(absl::Seconds(5.1))), ElementsAre(Pair("alf", 3), Pair("bob", 1)));
  }
  // Of a single ticket it is who came first.
  TicketOffice office = MakeOffice(1, 1, 1, 1);
  const ConnectionId alf{"alf", 1};
  office.AddActor(alf, kManyCredits, kManyRunners);
  office.OpenTickets(1);
  ASSERT_THAT(office.Grant(kNow), SizeIs(1));
  office.AddActor(kAda, kManyCredits, kManyRunners);
  office.AddActor(kBob, 1, 1);
  EXPECT_THAT(CountByActor(office.Grant(absl::Seconds(5.1))), ElementsAre(Pair("ada", 1)));
  office.AddActor(alf, kManyCredits, kManyRunners);
  EXPECT_THAT(CountByActor(office.Grant(absl::Seconds(10.2))), ElementsAre(Pair("bob", 1)));
}

// Her first iteration ended without her, and she has dropped what she had of it.
TEST(UnservedTickets, AVoidOneOccupiesARunnerForTenSecondsWhileNothingIsKnown) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(1);
  ASSERT_THAT(office.Grant(kNow), SizeIs(2));
  office.EndIteration();
  office.OpenIteration(2);
  EXPECT_THAT(office.Grant(absl::Seconds(10)), IsEmpty());
  EXPECT_THAT(office.Grant(absl::Seconds(10.1)), SizeIs(2));
}

TEST(UnservedTickets, WhileNobodyHasAnsweredEachWhoIsIdleGetsThemInTurn) {
  for (const bool async : {false, true}) {
    TicketOffice office = AllInAdasHands(async);
    const ConnectionId eve{"eve", 1}, joe{"joe", 1};
    const Grants bobs = office.Grant(absl::Seconds(5.1));
    ASSERT_THAT(CountByActor(bobs), ElementsAre(Pair("bob", 1)));
    office.AddActor(eve, 3, 3);
    // Those that ada alone has.
    ASSERT_THAT(CountByActor(office.Grant(absl::Seconds(5.2))), ElementsAre(Pair("eve", 3)));
    office.AddActor(joe, 1, 1);
    EXPECT_THAT(office.Grant(absl::Seconds(10)), IsEmpty());
    const Grants joes = office.Grant(absl::Seconds(10.15));
    ASSERT_THAT(CountByActor(joes), ElementsAre(Pair("joe", 1)));
    EXPECT_EQ(joes[0].second.id(), bobs[0].second.id());
    ServeAt(&office, joe, joes[0].second.id(), 10.2);
    EXPECT_FALSE(office.Accept(kBob, bobs[0].second.id(), absl::Seconds(10.3)));
    // What is a minute old nobody waits for any more: bob has a place for the next one.
    TicketOffice silent = AllInAdasHands(async);
    ASSERT_THAT(silent.Grant(absl::Seconds(5.1)), SizeIs(1));
    EXPECT_THAT(silent.Grant(absl::Seconds(65)), IsEmpty());
    EXPECT_THAT(CountByActor(silent.Grant(absl::Seconds(65.2))), ElementsAre(Pair("bob", 1)));
  }
}

TEST(UnservedTickets, AreAcceptedOnceFromTheFirstToAnswer) {
  TicketOffice office = AllInAdasHands(true);
  LetBobServeOne(&office);
  const Grants grants = office.Grant(absl::Seconds(5.1));
  ASSERT_THAT(grants, SizeIs(2));
  const uint64_t first = grants[0].second.id(), second = grants[1].second.id();
  EXPECT_TRUE(office.Accept(kBob, first, absl::Seconds(5.2)));
  EXPECT_FALSE(office.Accept(kAda, first, absl::Seconds(5.3)));
  EXPECT_TRUE(office.Accept(kAda, second, absl::Seconds(5.3)));
  EXPECT_FALSE(office.Accept(kBob, second, absl::Seconds(5.4)));
}

TEST(UnservedTickets, CountAgainstFurtherOnes) {
  TicketOffice office = AllInAdasHands(true);
  double now = 5.1;
  std::map<std::string, int> granted;
  // Bob serves what he gets in 0.1 s for a minute, ada none of hers.
  Grants grants = office.Grant(absl::Seconds(now));
  while (now < 65) {
    now += 0.1;
    for (const auto& [actor, ticket] : grants) {
      ++granted[actor.actor_id];
      if (actor == kBob) ServeAt(&office, kBob, ticket.id(), now);
    }
    office.OpenTickets(4);
    grants = office.Grant(absl::Seconds(now));
  }
  // She is tried 1, 2, 4, 8 and 16 s after the 5 s for each: at 6, 13, 22, 35 and 56 s.
  EXPECT_EQ(granted["ada"], 5);
  EXPECT_GE(granted["bob"], 500);
}

TEST(UnservedTickets, AreNotGrantedToTheSameOneAgain) {
  TicketOffice office = MakeOffice(1, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.OpenTickets(1);
  ASSERT_THAT(office.Grant(kNow), SizeIs(1));
  for (int seconds = 5; seconds < 100; ++seconds) EXPECT_THAT(office.Grant(absl::Seconds(seconds)), IsEmpty());
  ServeAt(&office, kAda, 1, 100);
}

TEST(UnservedTickets, ASlowActorIsGivenTimeOnceItIsKnown) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.AddActor(kBob, 1, 1);
  office.OpenTickets(2);
  ASSERT_THAT(office.Grant(kNow), SizeIs(2));
  ServeAt(&office, kAda, 1, 1.0);
  // Ten times what ada needs, then it is hers; bob answers after 20 s.
  ASSERT_THAT(CountByActor(office.Grant(absl::Seconds(10.1))), ElementsAre(Pair("ada", 1)));
  ServeAt(&office, kAda, 2, 11);
  EXPECT_FALSE(office.Accept(kBob, 2, absl::Seconds(20)));
  office.OpenTickets(2);
  ASSERT_THAT(office.Grant(absl::Seconds(20)), SizeIs(2));
  ServeAt(&office, kAda, 4, 21);
  EXPECT_THAT(office.Grant(absl::Seconds(79)), IsEmpty());  // Bob's is his for a minute.
  ServeAt(&office, kBob, 3, 79);
}

TEST(UnservedTickets, AreRememberedWhenTheActorConnectsAgain) {
  TicketOffice office = AllInAdasHands(true);
  LetBobServeOne(&office);
  office.Grant(absl::Seconds(5.1));
  const ConnectionId later_stay{"ada", 2}, another{"ada", 1, "another's"};
  office.AddActor(kAda, kManyCredits, kManyRunners);
  EXPECT_THAT(office.Grant(absl::Seconds(5.1)), IsEmpty());
  office.RemoveActor(kAda);
  office.AddActor(later_stay, kManyCredits, kManyRunners);
  EXPECT_THAT(office.Grant(absl::Seconds(5.1)), IsEmpty());
  EXPECT_THAT(office.Grant(absl::Seconds(6.2)), SizeIs(1));
  // Somebody else's good name is not hers to spoil.
  office.OpenTickets(1);
  office.AddActor(another, 1, 1);
  EXPECT_THAT(office.Grant(absl::Seconds(6.2)), ElementsAre(Pair(another, testing::_)));
}

TEST(ActorStanding, WaitsLongerEachTimeAndGrowsWithWhatIsServed) {
  ActorStanding standing;
  EXPECT_TRUE(standing.good());
  EXPECT_GE(standing.Most(kNow), 2 * ActorRecord::kMostRunners);
  double now = 0;
  for (const double wait : {1, 2, 4, 8, 16, 32, 60, 60}) {
    standing.LeaveUnserved(absl::Seconds(now));
    EXPECT_EQ(standing.Most(absl::Seconds(now + wait - 0.1)), 0u);
    now += wait;
    EXPECT_EQ(standing.Most(absl::Seconds(now)), 1u);
  }
  EXPECT_FALSE(standing.good());
  for (uint32_t served = 1; served <= 8; ++served) {
    standing.Serve();
    EXPECT_EQ(standing.Most(absl::Seconds(now)), 1 + served);
  }
  // After one that was served it waits for a second again, and no longer once it answers.
  standing.LeaveUnserved(absl::Seconds(now));
  EXPECT_EQ(standing.Most(absl::Seconds(now + 0.9)), 0u);
  EXPECT_EQ(standing.Most(absl::Seconds(now + 1)), 1u);
  standing.ServeLate();
  EXPECT_EQ(standing.Most(absl::Seconds(now)), 1u);
  // What it answers late does not make the next wait shorter.
  standing.LeaveUnserved(absl::Seconds(now));
  EXPECT_EQ(standing.Most(absl::Seconds(now + 1.9)), 0u);
}

TEST(AbsentStandings, RemembersTheNewest) {
  AbsentStandings absent;
  ActorStanding bad;
  bad.LeaveUnserved(kNow);
  absent.Keep(kBob, ActorStanding());
  EXPECT_TRUE(absent.Take(kBob).good());
  absent.Keep(kAda, bad);
  absent.Keep(kAda, bad);  // Is one all the same.
  for (size_t i = 1; i < AbsentStandings::kMost; ++i) absent.Keep({"actor-" + std::to_string(i), 1}, bad);
  EXPECT_FALSE(absent.Take(kAda).good());
  EXPECT_TRUE(absent.Take(kAda).good());
  absent.Keep(kAda, bad);
  absent.Keep(kBob, bad);
  EXPECT_TRUE(absent.Take({"actor-1", 1}).good());
  EXPECT_FALSE(absent.Take({"actor-2", 7}).good());
  EXPECT_FALSE(absent.Take(kAda).good());
}

}  // namespace
}  // namespace skein
