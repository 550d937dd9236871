// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Member Actor() {
  Member member;
  member.role = v1::ROLE_ACTOR;
  return member;
}

Member Learner(uint32_t rank) {
  Member member;
  member.role = v1::ROLE_LEARNER;
  member.rank = rank;
  member.host = "node1";
  member.pid = 42;
  return member;
}

MonotonicTime At(double seconds) { return absl::Seconds(seconds); }

TEST(Membership, NumbersActorsFromOneAndLearnersByRank) {
  Membership membership(absl::Seconds(5), 100);
  EXPECT_EQ((*membership.Join(Actor(), At(0)))->id, "actor-1");
  EXPECT_EQ((*membership.Join(Learner(3), At(0)))->id, "learner-3");
  EXPECT_EQ((*membership.Join(Actor(), At(0)))->id, "actor-2");
  EXPECT_EQ(membership.members().at("actor-1").generation, 101u);
  EXPECT_EQ(membership.members().at("learner-3").generation, 102u);
  EXPECT_EQ(membership.members().at("actor-2").generation, 103u);
  EXPECT_THAT(membership.IdsOf(v1::ROLE_ACTOR), ElementsAre("actor-1", "actor-2"));
  EXPECT_THAT(membership.IdsOf(v1::ROLE_LEARNER), ElementsAre("learner-3"));
}

TEST(Membership, NeverUsesAnActorIdAgain) {
  Membership membership(absl::Seconds(5), 0);
  const uint64_t generation = (*membership.Join(Actor(), At(0)))->generation;
  ASSERT_TRUE(membership.Remove("actor-1", generation).has_value());
  EXPECT_EQ((*membership.Join(Actor(), At(1)))->id, "actor-2");
}

TEST(Membership, RefusesASecondLiveLearnerOfARank) {
  Membership membership(absl::Seconds(5), 0);
  ASSERT_TRUE(membership.Join(Learner(0), At(0)).ok());
  absl::StatusOr<const Member*> second = membership.Join(Learner(0), At(1));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("node1, pid 42"));
}

TEST(Membership, GivesAReturningLearnerAHigherGeneration) {
  Membership membership(absl::Seconds(5), 0);
  ASSERT_TRUE(membership.Join(Learner(0), At(0)).ok());
  ASSERT_TRUE(membership.Remove("learner-0", 1).has_value());
  EXPECT_EQ((*membership.Join(Learner(0), At(1)))->generation, 2u);
  EXPECT_EQ(membership.Find("learner-0", 1).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(membership.Find("learner-0", 2).ok());
  EXPECT_EQ(membership.Find("learner-1", 1).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(membership.Find("learner-1", 3).status().code(), absl::StatusCode::kNotFound);  // Never given out.
  EXPECT_EQ(membership.Find("learner-1", 0).status().code(), absl::StatusCode::kNotFound);
}

TEST(Membership, ALiveMembersCallsComeWithTheCertificateThatItJoinedWith) {
  Membership membership(absl::Seconds(5), 0);
  Member learner = Learner(0);
  learner.certificate = "the learner's";
  ASSERT_TRUE(membership.Join(learner, At(0)).ok());
  EXPECT_TRUE(membership.CheckCaller("learner-0", 1, "the learner's").ok());
  for (const char* other : {"an actor's", ""}) {
    const absl::Status refused = membership.CheckCaller("learner-0", 1, other);
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("learner-0 joined with another certificate"));
  }
  // Of whom a log from before says nothing.
  Member old = Learner(1);
  ASSERT_TRUE(membership.Join(old, At(0)).ok());
  EXPECT_TRUE(membership.CheckCaller("learner-1", 1, "any").ok());
  // A predecessor on another node must hear that it is stale, and a stranger that it is none.
  EXPECT_TRUE(membership.CheckCaller("learner-0", 7, "another node's").ok());
  EXPECT_TRUE(membership.CheckCaller("actor-1", 1, "an actor's").ok());
}

TEST(Membership, RemovesOnlyTheGenerationNamed) {
  Membership membership(absl::Seconds(5), 0);
  ASSERT_TRUE(membership.Join(Learner(0), At(0)).ok());
  EXPECT_FALSE(membership.Remove("learner-0", 7).has_value());
  EXPECT_FALSE(membership.Remove("learner-9", 1).has_value());
  EXPECT_TRUE(membership.Find("learner-0", 1).ok());
}

TEST(Membership, ExpiresWhoWasSilentForAWholeLease) {
  Membership membership(absl::Seconds(5), 0);
  EXPECT_EQ(membership.NextExpiry(), absl::InfiniteDuration());
  ASSERT_TRUE(membership.Join(Actor(), At(0)).ok());
  ASSERT_TRUE(membership.Join(Actor(), At(1)).ok());
  EXPECT_EQ(membership.NextExpiry(), At(5));
  (*membership.Find("actor-1", 1))->last_heartbeat = At(3);  // Ends at 8 instead of 5.
  EXPECT_EQ(membership.NextExpiry(), At(6));
  EXPECT_TRUE(membership.Expire(At(5.999)).empty());
  std::vector<Member> expired = membership.Expire(At(6));
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].id, "actor-2");
  EXPECT_EQ(membership.NextExpiry(), At(8));
}

}  // namespace
}  // namespace skein
