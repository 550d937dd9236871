// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/env_share.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

std::string Message(const absl::StatusOr<EnvShare>& share) {
  EXPECT_TRUE(absl::IsInvalidArgument(share.status()));
  return std::string(share.status().message());
}

TEST(ShareOfRank, OneRankHasEverything) {
  const auto share = ShareOfRank(64, 16, 0, 1);
  ASSERT_TRUE(share.ok());
  EXPECT_EQ(share->first_env, 0u);
  EXPECT_EQ(share->share_envs, 64u);
}

TEST(ShareOfRank, TheFirstRanksHaveTheGroupsLeftOver) {
  // 7 groups of 4 over 3 ranks: 3 + 2 + 2.
  const uint32_t first[] = {0, 12, 20}, count[] = {12, 8, 8};
  for (uint32_t rank : {0, 1, 2}) {
    const auto share = ShareOfRank(28, 4, rank, 3);
    ASSERT_TRUE(share.ok());
    EXPECT_EQ(share->first_env, first[rank]);
    EXPECT_EQ(share->share_envs, count[rank]);
  }
}

TEST(ShareOfRank, SharesFollowEachOtherAndDifferByOneGroup) {
  for (uint32_t groups = 1; groups <= 12; ++groups) {
    for (uint32_t ranks = 1; ranks <= groups; ++ranks) {
      uint32_t next = 0;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const auto share = ShareOfRank(3 * groups, 3, rank, ranks);
        ASSERT_TRUE(share.ok());
        EXPECT_EQ(share->first_env, next);
        EXPECT_GE(share->share_envs / 3, groups / ranks);
        EXPECT_LE(share->share_envs / 3, (groups + ranks - 1) / ranks);
        next += share->share_envs;
      }
      EXPECT_EQ(next, 3 * groups);
    }
  }
}

TEST(ShareOfRank, SaysWhatWouldFitWhereGroupsAreTooFew) {
  EXPECT_EQ(
      Message(ShareOfRank(8, 4, 0, 3)),
      "rollout.num_envs 8 in env groups of rollout.envs_per_runner 4: got 2 groups for 3 learners, want one for each; "
      "what would fit: rollout.num_envs of at least 12, rollout.envs_per_runner of 2, or 2 learners");
  EXPECT_EQ(
      Message(ShareOfRank(1, 1, 1, 2)),
      "rollout.num_envs 1 in env groups of rollout.envs_per_runner 1: got 1 group for 2 learners, want one for each; "
      "what would fit: rollout.num_envs of at least 2, or 1 learner");
}

TEST(ShareOfRank, RefusesWhatCannotBeCut) {
  EXPECT_EQ(Message(ShareOfRank(8, 4, 2, 2)), "learner rank: got 2 of 2, want less");
  EXPECT_EQ(Message(ShareOfRank(8, 4, 0, 0)), "learner rank: got 0 of 0, want less");
  EXPECT_EQ(Message(ShareOfRank(9, 4, 0, 1)), "rollout.num_envs: got 9, want a multiple of rollout.envs_per_runner 4");
  EXPECT_EQ(Message(ShareOfRank(9, 0, 0, 1)), "rollout.num_envs: got 9, want a multiple of rollout.envs_per_runner 0");
}

}  // namespace
}  // namespace skein
