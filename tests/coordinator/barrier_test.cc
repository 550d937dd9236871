// SPDX-License-Identifier: Apache-2.0
#include "coordinator/barrier.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

MonotonicTime At(double seconds) { return absl::Seconds(seconds); }

// Learners a, b, c unless a test says otherwise; barrier "start", timeout 10 s.
class BarrierTest : public testing::Test {
 protected:
  std::vector<BarrierReply> Arrive(WaiterId waiter, const std::string& id, uint64_t generation, double now = 0) {
    return Arrive({waiter, v1::ROLE_LEARNER, id, "start", generation, absl::Seconds(10)}, now);
  }
  // At a barrier of `participants`, generation 1.
  std::vector<BarrierReply> ArriveOf(uint32_t participants, WaiterId waiter, const std::string& id) {
    return Arrive({waiter, v1::ROLE_LEARNER, id, "start", 1, absl::Seconds(10), participants, ""});
  }
  static BarrierArrival Paid(WaiterId waiter, const std::string& id, const std::string& payload) {
    return {waiter, v1::ROLE_LEARNER, id, "start", 1, absl::Seconds(10), 0, payload};
  }
  std::vector<BarrierReply> Arrive(const BarrierArrival& arrival, double now = 0) {
    std::vector<BarrierReply> replies;
    barriers_.Arrive(arrival, live_, At(now), &replies);
    return replies;
  }
  std::vector<BarrierReply> Remove(const std::set<std::string>& ids) {
    std::vector<BarrierReply> replies;
    for (const std::string& id : ids) live_.erase(id);
    barriers_.RemoveMembers(ids, &replies);
    return replies;
  }
  std::vector<BarrierReply> Tick(double now) {
    std::vector<BarrierReply> replies;
    barriers_.Tick(At(now), &replies);
    return replies;
  }

  std::set<std::string> live_ = {"a", "b", "c"};
  Barriers barriers_;
};

std::map<WaiterId, absl::StatusCode> CodesOf(const std::vector<BarrierReply>& replies) {
  std::map<WaiterId, absl::StatusCode> codes;
  for (const BarrierReply& reply : replies) codes[reply.waiter] = reply.status.code();
  EXPECT_EQ(codes.size(), replies.size()) << "a waiter had two replies";
  return codes;
}

using Codes = std::map<WaiterId, absl::StatusCode>;
constexpr absl::StatusCode kOk = absl::StatusCode::kOk;
constexpr absl::StatusCode kPassed = absl::StatusCode::kFailedPrecondition;
constexpr absl::StatusCode kTimeout = absl::StatusCode::kDeadlineExceeded;

TEST_F(BarrierTest, OpensForAllWhenTheLastArrives) {
  EXPECT_THAT(Arrive(1, "b", 1), IsEmpty());
  EXPECT_THAT(Arrive(2, "c", 1), IsEmpty());
  std::vector<BarrierReply> replies = Arrive(3, "a", 1);
  EXPECT_EQ(CodesOf(replies), (Codes{{1, kOk}, {2, kOk}, {3, kOk}}));
  for (const BarrierReply& reply : replies) EXPECT_THAT(reply.members, ElementsAre("a", "b", "c"));
  EXPECT_EQ(barriers_.NextDeadline(), absl::InfiniteDuration());
}

TEST_F(BarrierTest, AbsenteesAreWhoIsWaitedFor) {
  EXPECT_EQ(barriers_.absentees(), 0u);
  Arrive(1, "a", 1);
  EXPECT_EQ(barriers_.absentees(), 2u);  // b and c.
  Arrive(2, "a", 1);
  EXPECT_EQ(barriers_.absentees(), 2u);
  Arrive(3, "b", 1);
  EXPECT_EQ(barriers_.absentees(), 1u);
  Arrive(4, "c", 1);
  EXPECT_EQ(barriers_.absentees(), 0u);
}

TEST_F(BarrierTest, AbsenteesOfANumberMayNotHaveJoinedYet) {
  ArriveOf(5, 1, "a");
  EXPECT_EQ(barriers_.absentees(), 4u);
  Tick(10);
  EXPECT_EQ(barriers_.absentees(), 0u);
}

TEST_F(BarrierTest, NextGenerationWorks) {
  for (uint64_t generation = 1; generation <= 3; ++generation) {
    Arrive(10 * generation + 1, "a", generation);
    Arrive(10 * generation + 2, "b", generation);
    EXPECT_EQ(Arrive(10 * generation + 3, "c", generation).size(), 3u);
  }
}

TEST_F(BarrierTest, TimeoutNamesGenerationAndAbsentToEveryWaiterAtOnce) {
  Arrive(1, "b", 7, 0);
  Arrive(2, "a", 7, 9);  // Waits for 1 s only: the deadline is the first arrival's.
  EXPECT_EQ(barriers_.NextDeadline(), At(10));
  EXPECT_THAT(Tick(9.999), IsEmpty());
  std::vector<BarrierReply> replies = Tick(10);
  EXPECT_EQ(CodesOf(replies), (Codes{{1, kTimeout}, {2, kTimeout}}));
  for (const BarrierReply& reply : replies) {
    EXPECT_EQ(reply.status.message(), "barrier \"start\" generation 7 timed out with 2 of 3 arrived; absent: c");
  }
  EXPECT_THAT(Tick(100), IsEmpty());
}

TEST_F(BarrierTest, ATimedOutGenerationCanBeTriedAgain) {
  Arrive(1, "a", 1, 0);
  Tick(10);
  Arrive(2, "a", 1, 11);
  Arrive(3, "b", 1, 11);
  EXPECT_EQ(Arrive(4, "c", 1, 12).size(), 3u);
}

class FaultRow14 : public BarrierTest {};

TEST_F(FaultRow14, DuplicatesCountOnceAndAllAreAnswered) {
  Arrive(1, "a", 1);
  EXPECT_THAT(Arrive(2, "a", 1), IsEmpty());
  EXPECT_THAT(Arrive(3, "b", 1), IsEmpty());
  EXPECT_EQ(CodesOf(Arrive(4, "c", 1)), (Codes{{1, kOk}, {2, kOk}, {3, kOk}, {4, kOk}}));
}

TEST_F(FaultRow14, ARepeatAfterOpeningIsOkForThoseWhoTookPart) {
  Arrive(1, "a", 1);
  Arrive(2, "b", 1);
  Arrive(3, "c", 1);
  std::vector<BarrierReply> repeat = Arrive(4, "b", 1);
  EXPECT_EQ(CodesOf(repeat), (Codes{{4, kOk}}));
  EXPECT_THAT(repeat[0].members, ElementsAre("a", "b", "c"));
  EXPECT_EQ(CodesOf(Arrive(5, "d", 1)), (Codes{{5, kPassed}}));
}

TEST_F(FaultRow14, ALateArrivalIsToldThatItsGenerationHasPassed) {
  for (uint64_t generation : {1, 2}) {
    Arrive(1, "a", generation);
    Arrive(2, "b", generation);
    Arrive(3, "c", generation);
  }
  std::vector<BarrierReply> late = Arrive(4, "a", 1);
  EXPECT_EQ(CodesOf(late), (Codes{{4, kPassed}}));
  EXPECT_THAT(std::string(late[0].status.message()), HasSubstr("generation 1 has passed: generation 2 is open"));
}

TEST_F(BarrierTest, OpeningAGenerationEndsTheWaitForLowerOnes) {
  Arrive(1, "a", 1);
  Arrive(2, "a", 2);
  Arrive(3, "b", 2);
  EXPECT_EQ(CodesOf(Arrive(4, "c", 2)), (Codes{{1, kPassed}, {2, kOk}, {3, kOk}, {4, kOk}}));
}

TEST_F(BarrierTest, OpensWhenTheOnlyAbsentMemberIsRemoved) {
  Arrive(1, "a", 1);
  Arrive(2, "b", 1);
  std::vector<BarrierReply> replies = Remove({"c"});
  EXPECT_EQ(CodesOf(replies), (Codes{{1, kOk}, {2, kOk}}));
  EXPECT_THAT(replies[0].members, ElementsAre("a", "b"));
}

TEST_F(BarrierTest, AWaiterThatIsRemovedGetsItsAnswerAndTheRestGoOn) {
  Arrive(1, "a", 1);
  Arrive(2, "b", 1);
  EXPECT_EQ(CodesOf(Remove({"a"})), (Codes{{1, kPassed}}));
  std::vector<BarrierReply> replies = Arrive(3, "c", 1);
  EXPECT_EQ(CodesOf(replies), (Codes{{2, kOk}, {3, kOk}}));
  EXPECT_THAT(replies[0].members, ElementsAre("b", "c"));
}

TEST_F(BarrierTest, MembersRemovedTogetherAreNotCountedAsPresent) {
  Arrive(1, "a", 1);
  Arrive(2, "b", 1);
  // b waits and c is absent; both go in one step. a must not be told that b is there.
  std::vector<BarrierReply> replies = Remove({"b", "c"});
  EXPECT_EQ(CodesOf(replies), (Codes{{1, kOk}, {2, kPassed}}));
  for (const BarrierReply& reply : replies) {
    if (reply.status.ok()) {
      EXPECT_THAT(reply.members, ElementsAre("a"));
    }
  }
}

TEST_F(BarrierTest, AMemberThatReturnsUnderItsOldIdDidNotTakePart) {
  Arrive(1, "a", 1);
  Arrive(2, "b", 1);
  Arrive(3, "c", 1);
  Remove({"c"});
  live_.insert("c");
  EXPECT_EQ(CodesOf(Arrive(4, "c", 1)), (Codes{{4, kPassed}}));
}

TEST_F(BarrierTest, ACancelledWaiterIsAbsentAgain) {
  Arrive(1, "a", 1);
  Arrive(2, "b", 1);
  barriers_.Cancel(2);
  EXPECT_THAT(Arrive(3, "c", 1), IsEmpty());
  std::vector<BarrierReply> replies = Tick(10);
  EXPECT_EQ(CodesOf(replies), (Codes{{1, kTimeout}, {3, kTimeout}}));
  EXPECT_THAT(std::string(replies[0].status.message()), HasSubstr("absent: b"));
}

TEST_F(BarrierTest, CancellingOneOfTwoCallsKeepsTheMemberPresent) {
  Arrive(1, "a", 1);
  Arrive(2, "a", 1);
  barriers_.Cancel(1);
  Arrive(3, "b", 1);
  EXPECT_EQ(CodesOf(Arrive(4, "c", 1)), (Codes{{2, kOk}, {3, kOk}, {4, kOk}}));
}

TEST_F(BarrierTest, CancellingTheLastWaiterForgetsTheDeadline) {
  Arrive(1, "a", 1);
  barriers_.Cancel(1);
  barriers_.Cancel(99);  // Nobody.
  EXPECT_EQ(barriers_.NextDeadline(), absl::InfiniteDuration());
}

TEST_F(BarrierTest, ANewMemberIsNotWaitedForButMayTakePart) {
  Arrive(1, "a", 1);
  live_.insert("d");
  live_.insert("e");
  Arrive(2, "d", 1);
  Arrive(3, "b", 1);
  std::vector<BarrierReply> replies = Arrive(4, "c", 1);
  ASSERT_EQ(replies.size(), 4u);
  EXPECT_THAT(replies[0].members, ElementsAre("a", "b", "c", "d"));
}

TEST_F(BarrierTest, OpensOnceSoManyHaveArrivedWhateverMembersAreLive) {
  live_ = {"a"};
  EXPECT_THAT(ArriveOf(2, 1, "a"), IsEmpty());  // Though nobody else is live yet.
  live_ = {"a", "b", "c"};
  std::vector<BarrierReply> replies = ArriveOf(2, 2, "c");  // Without b, which is live.
  EXPECT_EQ(CodesOf(replies), (Codes{{1, kOk}, {2, kOk}}));
  for (const BarrierReply& reply : replies) EXPECT_THAT(reply.members, ElementsAre("a", "c"));
  EXPECT_EQ(CodesOf(ArriveOf(2, 3, "b")), (Codes{{3, kPassed}}));
}

TEST_F(BarrierTest, DisagreementOnTheNumberNamesBoth) {
  ArriveOf(2, 1, "a");
  std::vector<BarrierReply> replies = ArriveOf(3, 2, "b");
  EXPECT_EQ(CodesOf(replies), (Codes{{2, kPassed}}));
  EXPECT_EQ(replies[0].status.message(),
            "barrier \"start\" generation 1 takes 2 participants, as its first arrival said; b wants 3 participants: "
            "give all the same number");
  replies = Arrive(3, "b", 1);
  EXPECT_THAT(std::string(replies[0].status.message()), HasSubstr("b wants all live members"));
  // The one that was right still waits.
  EXPECT_EQ(CodesOf(ArriveOf(2, 4, "b")), (Codes{{1, kOk}, {4, kOk}}));
}

TEST_F(BarrierTest, WithANumberADepartureOpensNothingAndTheSuccessorTakesThePlace) {
  ArriveOf(3, 1, "a");
  ArriveOf(3, 2, "b");
  EXPECT_THAT(Remove({"c"}), IsEmpty());                     // Expected, and gone.
  EXPECT_EQ(CodesOf(Remove({"b"})), (Codes{{2, kPassed}}));  // Arrived, and gone.
  EXPECT_THAT(ArriveOf(3, 3, "b"), IsEmpty());               // b's successor.
  EXPECT_EQ(CodesOf(ArriveOf(3, 4, "c")), (Codes{{1, kOk}, {3, kOk}, {4, kOk}}));
}

TEST_F(BarrierTest, WithANumberTheTimeoutTellsHowManyAreMissingAndWhoIsKnown) {
  ArriveOf(5, 1, "a");
  ArriveOf(5, 2, "b");
  Remove({"b", "c"});
  barriers_.AddMember(v1::ROLE_LEARNER, "c");
  barriers_.AddMember(v1::ROLE_LEARNER, "d");
  barriers_.AddMember(v1::ROLE_ACTOR, "x");
  std::vector<BarrierReply> replies = Tick(10);
  EXPECT_EQ(CodesOf(replies), (Codes{{1, kTimeout}}));
  // Of five: a is here, b has gone, c has come back, d has joined, and one was never seen.
  EXPECT_EQ(replies[0].status.message(),
            "barrier \"start\" generation 1 timed out with 1 of 5 arrived, 4 missing; absent: b (gone), c, d; 1 never "
            "joined");
}

TEST_F(BarrierTest, TheTimeoutNamesTwentyOfThoseThatAreMissing) {
  for (int i = 0; i < 1000; ++i) live_.insert("m" + std::to_string(1000 + i));
  Arrive(1, "m1000", 1);
  const std::vector<BarrierReply> replies = Tick(10);
  ASSERT_EQ(replies.size(), 1u);
  const std::string message(replies[0].status.message());
  EXPECT_THAT(message, HasSubstr("timed out with 1 of 1003 arrived; absent: a, b, c, m1001, "));
  EXPECT_THAT(message, testing::EndsWith(", m1017 and 982 more"));  // 1,002 are missing.
}

// What all of them bring is one record for a successor, which etcd must take.
TEST_F(BarrierTest, PayloadsHaveABoundForAllTogether) {
  const std::string most(Barriers::kMaxPayloadBytes, 'p');
  for (int i = 0; i < 200; ++i) live_.insert("m" + std::to_string(1000 + i));
  for (WaiterId i = 0; i < 128; ++i) {  // 128 x 4 KiB = 512 KiB.
    ASSERT_THAT(Arrive(Paid(i, "m" + std::to_string(1000 + i), most)), IsEmpty());
  }
  ASSERT_THAT(Arrive(Paid(128, "m1000", most)), IsEmpty());  // Again: it takes the place of the first.
  const std::vector<BarrierReply> replies = Arrive(Paid(129, "m1128", "p"));
  EXPECT_EQ(CodesOf(replies), (Codes{{129, absl::StatusCode::kResourceExhausted}}));
  EXPECT_THAT(std::string(replies[0].status.message()),
              HasSubstr("takes 524288 bytes of payload in all; with m1128's it would have 524289"));
  EXPECT_THAT(Arrive(Paid(130, "m1128", "")), IsEmpty());
}

TEST_F(BarrierTest, PayloadsComeInTheOrderOfMembers) {
  Arrive(Paid(1, "c", "from c"));
  Arrive(Paid(2, "a", ""));
  std::vector<BarrierReply> replies = Arrive(Paid(3, "b", std::string("\0b", 2)));
  ASSERT_EQ(replies.size(), 3u);
  for (const BarrierReply& reply : replies) {
    EXPECT_THAT(reply.members, ElementsAre("a", "b", "c"));
    EXPECT_THAT(reply.payloads, ElementsAre("", std::string("\0b", 2), "from c"));
  }
}

TEST_F(BarrierTest, TheLastPayloadBeforeTheOpeningCounts) {
  Arrive(Paid(1, "a", "first"));
  Arrive(Paid(2, "a", "second"));
  barriers_.Cancel(2);  // The answer is on its way to the first call; what was said last stays said.
  Arrive(Paid(3, "b", ""));
  EXPECT_THAT(Arrive(Paid(4, "c", "")).front().payloads, ElementsAre("second", "", ""));
  std::vector<BarrierReply> repeat = Arrive(Paid(5, "a", "third"));
  ASSERT_EQ(CodesOf(repeat), (Codes{{5, kOk}}));
  EXPECT_THAT(repeat[0].payloads, ElementsAre("second", "", ""));
}

TEST_F(BarrierTest, RefusesAPayloadBeyondItsLimit) {
  live_ = {"a"};
  const std::string largest(4096, 'x');
  EXPECT_EQ(CodesOf(Arrive(Paid(1, "a", largest + "x"))), (Codes{{1, absl::StatusCode::kInvalidArgument}}));
  EXPECT_EQ(CodesOf(Arrive(Paid(2, "a", largest))), (Codes{{2, kOk}}));
}

TEST_F(BarrierTest, NamesAndRolesAreSeparate) {
  live_ = {"a"};
  EXPECT_EQ(CodesOf(Arrive(1, "a", 5)), (Codes{{1, kOk}}));
  EXPECT_EQ(CodesOf(Arrive({2, v1::ROLE_LEARNER, "a", "other", 1, absl::Seconds(1)})), (Codes{{2, kOk}}));
  EXPECT_EQ(CodesOf(Arrive({3, v1::ROLE_ACTOR, "x", "start", 1, absl::Seconds(1)})), Codes());
}

TEST_F(BarrierTest, ForgettingARoleLetsItsSuccessorsCountFromOne) {
  live_ = {"a"};
  Arrive(1, "a", 5);
  EXPECT_EQ(CodesOf(Arrive(2, "a", 1)), (Codes{{2, kPassed}}));
  Remove({"a"});
  barriers_.ForgetRole(v1::ROLE_ACTOR);
  live_ = {"a"};
  EXPECT_EQ(CodesOf(Arrive(3, "a", 1)), (Codes{{3, kPassed}}));
  barriers_.ForgetRole(v1::ROLE_LEARNER);
  EXPECT_EQ(CodesOf(Arrive(4, "a", 1)), (Codes{{4, kOk}}));
}

TEST_F(BarrierTest, AMemberThatDoesNotKnowTheGenerationTakesTheNext) {
  live_ = {"a", "b"};
  EXPECT_THAT(Arrive(1, "a", 0), IsEmpty());  // 1, the first.
  std::vector<BarrierReply> replies = Arrive(2, "b", 0);
  EXPECT_EQ(CodesOf(replies), (Codes{{1, kOk}, {2, kOk}}));
  EXPECT_EQ(replies[0].generation, 1u);
  EXPECT_THAT(Arrive(3, "a", 7), IsEmpty());
  replies = Arrive(4, "b", 0);  // 7, since a waits there.
  EXPECT_EQ(CodesOf(replies), (Codes{{3, kOk}, {4, kOk}}));
  EXPECT_EQ(replies[0].generation, 7u);
  EXPECT_THAT(Arrive(5, "a", 0), IsEmpty());
  Arrive(6, "b", 0);
  EXPECT_EQ(Arrive(7, "b", 8).front().generation, 8u);  // Repeated.
}

TEST_F(BarrierTest, RefusesWhatMakesNoSense) {
  const Codes invalid{{1, absl::StatusCode::kInvalidArgument}};
  EXPECT_EQ(CodesOf(Arrive({1, v1::ROLE_LEARNER, "a", "", 1, absl::Seconds(1)})), invalid);
  EXPECT_EQ(CodesOf(Arrive({1, v1::ROLE_LEARNER, "a", std::string(129, 'x'), 1, absl::Seconds(1)})), invalid);
  EXPECT_EQ(CodesOf(Arrive({1, v1::ROLE_LEARNER, "a", "start", 1, absl::Seconds(-1)})), invalid);
  EXPECT_EQ(CodesOf(Arrive({1, v1::ROLE_LEARNER, "a", "start", 1, absl::InfiniteDuration()})), invalid);
}

TEST_F(BarrierTest, LimitsTheNumberOfNames) {
  live_ = {"a"};
  for (size_t i = 0; i < Barriers::kMaxNames; ++i) {
    ASSERT_EQ(CodesOf(Arrive({i, v1::ROLE_LEARNER, "a", std::to_string(i), 1, absl::Seconds(1)})), (Codes{{i, kOk}}));
  }
  EXPECT_EQ(CodesOf(Arrive({1, v1::ROLE_LEARNER, "a", "more", 1, absl::Seconds(1)})),
            (Codes{{1, absl::StatusCode::kResourceExhausted}}));
  EXPECT_EQ(CodesOf(Arrive({1, v1::ROLE_LEARNER, "a", "7", 2, absl::Seconds(1)})), (Codes{{1, kOk}}));
}

}  // namespace
}  // namespace skein
