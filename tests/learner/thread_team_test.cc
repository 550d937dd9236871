// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/thread_team.h"

#include <chrono>
#include <numeric>
#include <set>
#include <stdexcept>

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(ThreadTeam, EachPieceIsDoneOnceByAThreadOfItsOwn) {
  ThreadTeam team(3);
  ASSERT_EQ(team.size(), 4);
  std::vector<int> done(4);
  std::vector<std::thread::id> by(4);
  for (int round = 0; round < 2000; ++round) {
    const int count = 1 + round % 4;
    team.Run(count, [&](int i) {
      ++done[i];
      by[i] = std::this_thread::get_id();
    });
    // Now and then long enough that helpers sleep.
    if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(done, (std::vector<int>{2000, 1500, 1000, 500}));
  EXPECT_EQ(by[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(by.begin(), by.end()).size(), 4u);
}

TEST(ThreadTeam, NobodyIsNeededForOnePiece) {
  ThreadTeam team(0);
  int done = 0;
  team.Run(1, [&](int i) { done += 1 + i; });
  EXPECT_EQ(done, 1);
}

// Whichever thread throws, all are done first, and the next work is as ever.
TEST(ThreadTeam, AnExceptionReachesTheCaller) {
  ThreadTeam team(2);
  for (int thrower = 0; thrower < 3; ++thrower) {
    std::vector<int> done(3);
    EXPECT_THROW(team.Run(3,
                          [&](int i) {
                            ++done[i];
                            if (i == thrower) throw std::runtime_error("no");
                          }),
                 std::runtime_error);
    EXPECT_EQ(done, (std::vector<int>{1, 1, 1}));
    team.Run(3, [&](int i) { ++done[i]; });
    EXPECT_EQ(std::accumulate(done.begin(), done.end(), 0), 6);
  }
}

}  // namespace
}  // namespace skein
