// SPDX-License-Identifier: Apache-2.0
#include "coordinator/assignment.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

using Actors = std::map<std::string, uint32_t>;

MonotonicTime At(double seconds) { return absl::Seconds(seconds); }

// Actors "a00", "a01", ... of one runner each.
Actors ActorsOfOne(int count) {
  Actors actors;
  for (int i = 0; i < count; ++i) actors[(i < 10 ? "a0" : "a") + std::to_string(i)] = 1;
  return actors;
}

TEST(Assignment, IsEmptyWithoutALearner) {
  Assignment assignment;
  EXPECT_THAT(assignment.Update({}, {{"a", 1}}), IsEmpty());
  EXPECT_EQ(assignment.RankOf("a"), std::nullopt);
  EXPECT_EQ(assignment.RankOf("nobody"), std::nullopt);
  EXPECT_THAT(assignment.Shares(), IsEmpty());
}

TEST(Assignment, GivesANewActorTheRankWithTheFewestRunners) {
  Assignment assignment;
  assignment.Update({0, 1}, {{"a", 4}});
  assignment.Update({0, 1}, {{"a", 4}, {"b", 1}});
  assignment.Update({0, 1}, {{"a", 4}, {"b", 1}, {"c", 2}});
  EXPECT_EQ(assignment.RankOf("a"), 0u);  // 0, 0: the lowest.
  EXPECT_EQ(assignment.RankOf("b"), 1u);  // 4, 0
  EXPECT_EQ(assignment.RankOf("c"), 1u);  // 4, 1: by runners, not by actors.
  EXPECT_THAT(assignment.Shares(), ElementsAre(Pair(0, 4), Pair(1, 3)));
}

TEST(Assignment, AnActorWithoutRunnersCountsAsOne) {
  Assignment assignment;
  assignment.Update({0, 1}, {{"a", 0}, {"b", 0}});
  EXPECT_THAT(assignment.Shares(), ElementsAre(Pair(0, 1), Pair(1, 1)));
}

TEST(Assignment, MovesAsFewAsItTakesWhenARankJoins) {
  Assignment assignment;
  assignment.Update({0}, ActorsOfOne(7));
  // 7, 0 becomes 4, 3: three moves, and no fewer would do.
  const auto moves = assignment.Update({0, 1}, ActorsOfOne(7));
  EXPECT_THAT(moves, SizeIs(3));
  for (const Assignment::Move& move : moves) {
    EXPECT_EQ(move.from, 0u);
    EXPECT_EQ(move.to, 1u);
    EXPECT_FALSE(move.starvation);
    EXPECT_EQ(assignment.RankOf(move.actor), 1u);
  }
  EXPECT_THAT(assignment.Shares(), ElementsAre(Pair(0, 4), Pair(1, 3)));
  EXPECT_THAT(assignment.Update({0, 1}, ActorsOfOne(7)), IsEmpty());
}

TEST(Assignment, MovesTheActorThatFitsTheGapBest) {
  Assignment assignment;
  const Actors actors = {{"a", 1}, {"b", 1}, {"c", 4}, {"d", 2}};
  assignment.Update({0}, actors);
  // 8, 0: the 4 closes the gap at once.
  const auto moves = assignment.Update({0, 1}, actors);
  ASSERT_THAT(moves, SizeIs(1));
  EXPECT_EQ(moves[0].actor, "c");
}

TEST(Assignment, NeverMovesWhatWouldOnlySwapTheShares) {
  Assignment assignment;
  assignment.Update({0}, {{"a", 8}});
  EXPECT_THAT(assignment.Update({0, 1}, {{"a", 8}}), IsEmpty());  // 8, 0 to 0, 8 helps nobody.
  assignment.Update({0, 1}, {{"a", 8}, {"b", 1}});
  EXPECT_EQ(assignment.RankOf("b"), 1u);
  EXPECT_THAT(assignment.Update({0, 1}, {{"a", 8}, {"b", 1}}), IsEmpty());
}

TEST(Assignment, TakesFromTheNextLargestShareWhereTheLargestHasNothingToGive) {
  Assignment assignment;
  const Actors actors = {{"a", 8}, {"b", 3}, {"c", 3}};
  assignment.Update({0, 1}, actors);  // 8 | 3 + 3
  const auto moves = assignment.Update({0, 1, 2}, actors);
  ASSERT_THAT(moves, SizeIs(1));
  EXPECT_EQ(moves[0].from, 1u);
  EXPECT_THAT(assignment.Shares(), ElementsAre(Pair(0, 8), Pair(1, 3), Pair(2, 3)));
}

TEST(Assignment, EvensOutWhenActorsLeave) {
  Assignment assignment;
  Actors actors = ActorsOfOne(8);  // Even ones feed rank 0, odd ones rank 1.
  assignment.Update({0, 1}, actors);
  for (const char* id : {"a01", "a03", "a05"}) actors.erase(id);
  const auto moves = assignment.Update({0, 1}, actors);  // 4, 1 becomes 3, 2.
  EXPECT_THAT(moves, SizeIs(1));
  EXPECT_THAT(assignment.Shares(), ElementsAre(Pair(0, 3), Pair(1, 2)));
  EXPECT_EQ(assignment.RankOf("a01"), std::nullopt);
}

TEST(Assignment, MovesOnlyTheActorsOfALostLearner) {
  Assignment assignment;
  const Actors actors = {{"a", 1}, {"b", 1}, {"c", 1}};
  assignment.Update({0, 1, 2}, actors);
  const auto moves = assignment.Update({0, 2}, actors);
  ASSERT_THAT(moves, SizeIs(1));
  EXPECT_EQ(moves[0].actor, "b");
  EXPECT_EQ(moves[0].from, 1u);
  EXPECT_EQ(moves[0].to, 0u);
  EXPECT_EQ(assignment.RankOf("c"), 2u);
}

TEST(Assignment, ALearnerThatReturnsKeepsItsActorsAndThatIsNoMove) {
  Assignment assignment;
  assignment.Update({0}, {{"a", 1}});
  EXPECT_THAT(assignment.Update({}, {{"a", 1}}), IsEmpty());
  EXPECT_EQ(assignment.RankOf("a"), std::nullopt);
  EXPECT_THAT(assignment.Update({0}, {{"a", 1}}), IsEmpty());
  EXPECT_EQ(assignment.RankOf("a"), 0u);
  assignment.Update({}, {{"a", 1}});
  EXPECT_THAT(assignment.Update({1}, {{"a", 1}}), SizeIs(1));
}

TEST(AssignmentStarvation, ALonelyActorServesTheRanksInTurn) {
  Assignment assignment;
  assignment.Update({0, 1}, {{"a", 2}});
  EXPECT_EQ(assignment.ServeStarving({{0, 0}, {1, 1.9}}, At(0)), std::nullopt);
  auto move = assignment.ServeStarving({{0, 0}, {1, 2}}, At(0));
  ASSERT_TRUE(move);
  EXPECT_EQ(move->to, 1u);
  EXPECT_TRUE(move->starvation);
  EXPECT_EQ(assignment.ServeStarving({{0, 3}, {1, 0}}, At(1.9)), std::nullopt);  // Too soon.
  move = assignment.ServeStarving({{0, 3}, {1, 0}}, At(2));
  ASSERT_TRUE(move);
  EXPECT_EQ(move->to, 0u);
  EXPECT_EQ(assignment.RankOf("a"), 0u);
}

TEST(AssignmentStarvation, NobodyWithoutDataGivesAnActorAway) {
  Assignment assignment;
  assignment.Update({0, 1}, {{"a", 1}});
  EXPECT_EQ(assignment.ServeStarving({{0, 1}, {1, 9}}, At(0)), std::nullopt);
  EXPECT_EQ(assignment.ServeStarving({{0, std::nan("")}, {1, 9}}, At(0)), std::nullopt);
  EXPECT_EQ(assignment.ServeStarving({{0, 0}, {1, std::nan("")}}, At(0)), std::nullopt);
  EXPECT_EQ(assignment.ServeStarving({{1, 9}}, At(0)), std::nullopt);          // Rank 0 has not said anything.
  EXPECT_EQ(assignment.ServeStarving({{0, 0}, {7, 9}}, At(0)), std::nullopt);  // Rank 7 is not there.
  EXPECT_TRUE(assignment.ServeStarving({{0, 0.9}, {1, 9}}, At(0)));
}

TEST(AssignmentStarvation, NobodyGivesToARankWithAsMuch) {
  Assignment assignment;
  assignment.Update({0, 1}, {{"a", 1}, {"b", 1}});
  EXPECT_EQ(assignment.ServeStarving({{0, 0}, {1, 9}}, At(0)), std::nullopt);
  assignment.Update({0, 1}, {{"a", 1}, {"b", 1}, {"c", 1}});  // 2, 1
  EXPECT_TRUE(assignment.ServeStarving({{0, 0}, {1, 9}}, At(0)));
  EXPECT_EQ(assignment.ServeStarving({{0, 0}, {1, 9}}, At(2)), std::nullopt);  // 1, 2
}

TEST(AssignmentStarvation, NeverLeavesSharesFurtherApartThanTheLargestActor) {
  Assignment assignment;
  assignment.Update({0, 1}, {{"a", 8}, {"b", 1}});
  // 8, 1 would become 0, 9.
  EXPECT_EQ(assignment.ServeStarving({{0, 0}, {1, 9}}, At(0)), std::nullopt);
}

TEST(AssignmentStarvation, TheNeediestComesFirstAndTheRichestGives) {
  Assignment assignment;
  // Three actors for five ranks: 0, 1, 2 have one each.
  assignment.Update({0, 1, 2, 3, 4}, ActorsOfOne(3));
  auto move = assignment.ServeStarving({{0, 0}, {1, 0}, {2, 7}, {3, 3}, {4, 4}}, At(0));
  ASSERT_TRUE(move);  // 3 and 4 have fewer than 2, and 4 has waited for longer.
  EXPECT_EQ(move->from, 0u);
  EXPECT_EQ(move->to, 4u);
  move = assignment.ServeStarving({{0, 3}, {1, 0}, {2, 7}, {3, 3}, {4, 0}}, At(2));
  ASSERT_TRUE(move);  // 0 and 3 are equal in all: the lowest.
  EXPECT_EQ(move->from, 1u);
  EXPECT_EQ(move->to, 0u);
}

// Shares of all ranks differ by no more than the largest actor.
void ExpectBalanced(const Assignment& assignment, const Actors& actors) {
  uint64_t least = ~uint64_t{0}, most = 0, largest = 0, sum = 0, all = 0;
  for (const auto& [rank, share] : assignment.Shares()) {
    least = std::min(least, share);
    most = std::max(most, share);
    sum += share;
  }
  for (const auto& [id, runners] : actors) {
    largest = std::max<uint64_t>(largest, runners);
    all += runners;
    EXPECT_TRUE(assignment.RankOf(id));
  }
  EXPECT_EQ(sum, all);
  EXPECT_LE(most - least, largest);
}

TEST(AssignmentProperty, StaysBalancedThroughComingGoingAndStarving) {
  std::mt19937 random(7);
  for (int sequence = 0; sequence < 40; ++sequence) {
    Assignment assignment, twin;
    std::set<uint32_t> ranks = {0};
    Actors actors;
    int born = 0;
    assignment.Update(ranks, actors);
    twin.Update(ranks, actors);
    for (int event = 0; event < 60; ++event) {
      std::map<uint32_t, double> waiting;
      switch (random() % 6) {
        case 0:
        case 1:
          actors["a" + std::to_string(born++)] = 1 + random() % (sequence % 2 == 0 ? 1 : 16);
          break;
        case 2:
          if (!actors.empty()) actors.erase(std::next(actors.begin(), random() % actors.size()));
          break;
        case 3:
          ranks.insert(random() % 8);
          break;
        case 4:
          if (ranks.size() > 1) ranks.erase(std::next(ranks.begin(), random() % ranks.size()));
          break;
        default:
          for (uint32_t rank : ranks) waiting[rank] = random() % 4;
      }
      if (!waiting.empty()) {
        const auto move = assignment.ServeStarving(waiting, At(event));
        EXPECT_EQ(twin.ServeStarving(waiting, At(event)).has_value(), move.has_value());
      } else {
        const auto moves = assignment.Update(ranks, actors);
        EXPECT_EQ(twin.Update(ranks, actors).size(), moves.size());
        // Nothing happens without a cause.
        EXPECT_THAT(assignment.Update(ranks, actors), IsEmpty());
        EXPECT_THAT(twin.Update(ranks, actors), IsEmpty());
        // No actor is moved twice at one event.
        std::set<std::string> moved;
        for (const Assignment::Move& move : moves) {
          EXPECT_TRUE(moved.insert(move.actor).second);
        }
      }
      ExpectBalanced(assignment, actors);
      for (const auto& [id, runners] : actors) EXPECT_EQ(assignment.RankOf(id), twin.RankOf(id));
    }
  }
}

TEST(AssignmentProperty, ActorsOfOneSizeAreMovedNoMoreThanNeeded) {
  std::mt19937 random(11);
  for (int sequence = 0; sequence < 200; ++sequence) {
    Assignment assignment;
    const uint32_t before = 1 + random() % 5;
    const int count = static_cast<int>(random() % 40);
    std::set<uint32_t> ranks;
    for (uint32_t rank = 0; rank < before; ++rank) ranks.insert(rank);
    assignment.Update(ranks, ActorsOfOne(count));
    ranks.insert(before);
    // The new actor gets the smaller of two equal shares, and no other actor anything.
    EXPECT_THAT(assignment.Update(ranks, ActorsOfOne(count)), SizeIs(count / (before + 1)));
  }
}

}  // namespace
}  // namespace skein
