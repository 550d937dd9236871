// SPDX-License-Identifier: Apache-2.0
// Single rules of the UAV world, each in an arena that was arranged for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "env/registry.h"
#include "env/uav/shortest_path.h"
#include "env/uav/uav_env.h"

namespace skein {
namespace {

using testing::ElementsAre;

enum Choice { kStay, kEast, kNorthEast, kNorth, kNorthWest, kWest, kSouthWest, kSouth, kSouthEast };

// An arena of 20 x 20 cells; rewards are each UAV's own unless the options say otherwise.
class Arena {
 public:
  struct Uav {
    double x, y;
    int target_i = 19, target_j = 19;
  };

  explicit Arena(UavTask task, std::vector<Uav> uavs, std::vector<std::pair<int, int>> obstacles = {},
                 UavOptions options = {.team_share = 0, .progress_reward = 0})
      : layout_(MakeUavLayout(task, options)) {
    options.uavs = static_cast<int>(uavs.size());
    layout_ = MakeUavLayout(task, options);
    env_ = MakeUavEnv(task, options).value();
    std::vector<double> state(layout_.saved_size);
    state[1] = std::numeric_limits<float>::max();
    for (const auto& [i, j] : obstacles)
      state[layout_.saved_obstacles + (20 * j + i) / 32] += std::exp2((20 * j + i) % 32);
    for (size_t n = 0; n < uavs.size(); ++n) {
      double* const own = state.data() + layout_.saved_uavs + n * kUavSavedDoubles;
      own[0] = uavs[n].x;
      own[1] = uavs[n].y;
      own[6] = 20 * std::floor(uavs[n].y) + std::floor(uavs[n].x);
      own[7] = 20 * uavs[n].target_j + uavs[n].target_i;
    }
    env_->LoadState(state.data());
    reward_.resize(uavs.size());
  }

  bool Step(std::vector<float> action) { return env_->Step(action.data(), reward_.data()); }
  const std::vector<float>& reward() const { return reward_; }
  std::vector<int> Status() const {
    std::vector<int> status;
    const std::vector<double> state = State();
    for (size_t n = 0; n < reward_.size(); ++n) {
      status.push_back(static_cast<int>(state[layout_.saved_uavs + n * kUavSavedDoubles + 4]));
    }
    return status;
  }
  std::vector<float> Metrics() const {
    std::vector<float> metrics(env_->spec().episode_metrics.size());
    env_->EpisodeMetrics(metrics.data());
    return metrics;
  }
  // Part of the observation of UAV `n`.
  std::vector<float> Observation(int n, int from, int size) const {
    std::vector<float> obs(env_->spec().num_agents * layout_.obs_size);
    env_->Observe(obs.data());
    const auto begin = obs.begin() + n * layout_.obs_size + from;
    return {begin, begin + size};
  }
  std::vector<double> State() const {
    std::vector<double> state(layout_.saved_size);
    env_->SaveState(state.data());
    return state;
  }
  const UavLayout& layout() const { return layout_; }

 private:
  UavLayout layout_;
  std::unique_ptr<Env> env_;
  std::vector<float> reward_;
};

constexpr int kAlive = 0, kArrived = 1, kCrashed = 2;
constexpr UavTask kNavigate = UavTask::kNavigate, kCover = UavTask::kCover;

TEST(UavRules, AWallIsHitWhenTheDiscTouchesIt) {
  Arena arena(kNavigate, {{18.9, 5.5}, {0.65, 8.5}, {3.5, 0.6}, {9.5, 19.55}});
  // East 19.4 and 0.6 away; west 0.15 < 0.2; south 0.1; north 0.05 beyond the wall.
  EXPECT_FALSE(arena.Step({kEast, kWest, kSouth, kNorth}));
  EXPECT_THAT(arena.Status(), ElementsAre(kAlive, kCrashed, kCrashed, kCrashed));
  EXPECT_THAT(arena.reward(), ElementsAre(-0.02f, -5.02f, -5.02f, -5.02f));
  EXPECT_TRUE(arena.Step({kEast, kEast, kEast, kEast}));  // 19.9
  EXPECT_THAT(arena.reward(), ElementsAre(-5.02f, 0, 0, 0));
}

TEST(UavRules, AnObstacleIsADistanceFromASquare) {
  // The obstacle is [6, 7) x [6, 7). West of it by 0.21 and 0.19; south-west by (0.15, 0.15), which is 0.212, and by
  // (0.13, 0.13), 0.184.
  const std::tuple<double, double, int> places[] = {
      {5.79, 6.5, kAlive}, {5.81, 6.5, kCrashed}, {5.85, 5.85, kAlive}, {5.87, 5.87, kCrashed}};
  for (const auto& [x, y, status] : places) {
    Arena arena(kNavigate, {{x, y}}, {{6, 6}});
    arena.Step({kStay});
    EXPECT_THAT(arena.Status(), ElementsAre(status)) << x << " " << y;
  }
}

TEST(UavRules, TwoUavsThatMeetBothCrashAndAreGone) {
  // 1.35 - 2 * 0.5 = 0.35 < 0.4. The third comes 0.5 nearer, to 1.65 + 0.5 from the second.
  Arena arena(kNavigate, {{5.0, 5.5}, {6.35, 5.5}, {9.0, 5.5}});
  EXPECT_FALSE(arena.Step({kEast, kWest, kWest}));
  EXPECT_THAT(arena.Status(), ElementsAre(kCrashed, kCrashed, kAlive));
  EXPECT_THAT(arena.reward(), ElementsAre(-5.02f, -5.02f, -0.02f));
  EXPECT_NEAR(arena.Metrics()[4], 0.35, 1e-5);
  for (int t = 0; t < 10; ++t) arena.Step({kStay, kStay, kWest});  // Through where they were.
  EXPECT_THAT(arena.Status(), ElementsAre(kCrashed, kCrashed, kAlive));
}

TEST(UavRules, TwoUavsPassAtMoreThanADiameter) {
  Arena arena(kNavigate, {{5.0, 5.5}, {6.41, 5.5}});
  arena.Step({kEast, kWest});
  EXPECT_THAT(arena.Status(), ElementsAre(kAlive, kAlive));
  EXPECT_NEAR(arena.Metrics()[4], 0.41, 1e-5);
}

TEST(UavRules, AUavThatHitsAWallIsStillThereInThatStep) {
  Arena arena(kNavigate, {{0.5, 5.5}, {0.5, 5.85}, {3.5, 5.5}});
  arena.Step({kWest, kWest, kStay});
  EXPECT_THAT(arena.Status(), ElementsAre(kCrashed, kCrashed, kAlive));
  EXPECT_NEAR(arena.Metrics()[4], 0.35, 1e-5);
}

// Fast and thin: whole steps lie between two looks.
constexpr double kThin = 0.1;
UavOptions Fast(double radius = kThin) { return {.radius = radius, .speed = 1, .team_share = 0, .progress_reward = 0}; }

TEST(UavRules, TwoThatFlyThroughEachOtherCrash) {
  Arena arena(kNavigate, {{5.0, 5.5}, {6.0, 5.5}}, {}, Fast());
  EXPECT_TRUE(arena.Step({kEast, kWest}));  // As far apart afterwards as before.
  EXPECT_THAT(arena.Status(), ElementsAre(kCrashed, kCrashed));
  EXPECT_THAT(arena.reward(), ElementsAre(-5.02f, -5.02f));
  EXPECT_EQ(arena.Metrics()[4], 0);
  // They are where they would have come without each other.
  EXPECT_EQ(arena.State()[arena.layout().saved_uavs], 6);
  EXPECT_EQ(arena.State()[arena.layout().saved_uavs + kUavSavedDoubles], 5);
}

TEST(UavRules, WaysMayCrossAtDifferentTimes) {
  // From (0.5, -0.8) and (0.5, -0.75) at (-1, 1): least distances 0.3 / sqrt(2) = 0.212 and 0.25 / sqrt(2) = 0.177.
  Arena passes(kNavigate, {{5.0, 5.5}, {5.5, 4.7}}, {}, Fast());
  passes.Step({kEast, kNorth});
  EXPECT_THAT(passes.Status(), ElementsAre(kAlive, kAlive));
  EXPECT_NEAR(passes.Metrics()[4], 0.3 / std::sqrt(2), 1e-5);
  Arena meets(kNavigate, {{5.0, 5.5}, {5.5, 4.75}}, {}, Fast());
  meets.Step({kEast, kNorth});
  EXPECT_THAT(meets.Status(), ElementsAre(kCrashed, kCrashed));
}

TEST(UavRules, TwoThatFlyTheSameWayKeepTheirDistance) {
  Arena arena(kNavigate, {{5.0, 5.5}, {5.0, 5.91}});
  arena.Step({kEast, kEast});
  EXPECT_THAT(arena.Status(), ElementsAre(kAlive, kAlive));
  EXPECT_NEAR(arena.Metrics()[4], 0.41, 1e-5);
}

TEST(UavRules, AUavThatHasHitAnotherStillFliesToTheEndOfTheStep) {
  // The first two meet at x = 5.45; the second goes on to 4.9, 0.15 from the third, which the first left 0.25 away.
  Arena arena(kNavigate, {{5.0, 5.5}, {5.9, 5.5}, {4.75, 5.5}}, {}, Fast());
  EXPECT_TRUE(arena.Step({kEast, kWest, kStay}));
  EXPECT_THAT(arena.Status(), ElementsAre(kCrashed, kCrashed, kCrashed));
}

// Past the corner (6, 7) of the obstacle (6, 6), half a metre to the north-east. The middle of the way is at `side`
// from the corner, outside of the obstacle if it is positive.
Arena PastACorner(double side, double radius, int target_i = 19, int target_j = 19) {
  const double x = 6 - std::sqrt(0.5) * (0.25 + side), y = 7 - std::sqrt(0.5) * (0.25 - side);
  return Arena(kNavigate, {{x, y, target_i, target_j}}, {{6, 6}},
               {.radius = radius, .team_share = 0, .progress_reward = 0});
}

TEST(UavRules, ACornerCannotBeCut) {
  // Both ends of the way are 0.177 + 0.707 * 0.1 = 0.247 from the obstacle, its middle is 0.1.
  Arena touches = PastACorner(0.1, 0.2);
  EXPECT_EQ(touches.Observation(0, touches.layout().obs_feelers, 8)[1], 1);
  touches.Step({kNorthEast});
  EXPECT_THAT(touches.Status(), ElementsAre(kCrashed));
  // 0.177 + 0.707 * 0.21 = 0.325, and 0.21.
  Arena passes = PastACorner(0.21, 0.2);
  EXPECT_EQ(passes.Observation(0, passes.layout().obs_feelers, 8)[1], 0);
  passes.Step({kNorthEast});
  EXPECT_THAT(passes.Status(), ElementsAre(kAlive));
}

TEST(UavRules, AThinUavCannotFlyThroughAnObstacle) {
  // Its ends are 0.106 from the obstacle, its middle crosses it 0.1 from the corner.
  Arena arena = PastACorner(-0.1, 0.01);
  EXPECT_EQ(arena.Observation(0, arena.layout().obs_feelers, 8)[1], 1);
  arena.Step({kNorthEast});
  EXPECT_THAT(arena.Status(), ElementsAre(kCrashed));
}

TEST(UavRules, WhatTouchesAtTheStartCrashesWhereverItFlies) {
  Arena uavs(kNavigate, {{5.0, 5.5}, {5.3, 5.5}, {8.9, 5.5}}, {{9, 5}});
  uavs.Step({kWest, kEast, kWest});
  EXPECT_THAT(uavs.Status(), ElementsAre(kCrashed, kCrashed, kCrashed));
}

TEST(UavRules, AUavThatTouchesOnTheWayDoesNotArrive) {
  // Ends at (6.1, 7.2), within half a metre of (6.5, 7.5).
  Arena past = PastACorner(0.1, 0.2, 6, 7);
  EXPECT_TRUE(past.Step({kNorthEast}));
  EXPECT_THAT(past.Status(), ElementsAre(kCrashed));
  EXPECT_THAT(past.reward(), ElementsAre(-5.02f));
  // Through each other, each into its target.
  Arena through(kNavigate, {{5.0, 5.5, 6, 5}, {6.0, 5.5, 5, 5}}, {}, Fast());
  through.Step({kEast, kWest});
  EXPECT_THAT(through.Status(), ElementsAre(kCrashed, kCrashed));
}

TEST(UavRules, ATargetIsReachedAtTheEndOfAStep) {
  // 0.53 away, 0.4 on the way, 0.6 at the end.
  Arena arena(kNavigate, {{9.15, 5.9, 9, 5}}, {},
              {.radius = kThin, .speed = 0.8, .team_share = 0, .progress_reward = 0});
  arena.Step({kEast});
  EXPECT_THAT(arena.Status(), ElementsAre(kAlive));
}

TEST(UavRules, AUavThatHasArrivedIsInNobodysWay) {
  Arena arena(kNavigate, {{8.6, 5.5, 9, 5}, {10.6, 5.5, 2, 5}});
  arena.Step({kEast, kWest});
  EXPECT_THAT(arena.Status(), ElementsAre(kArrived, kAlive));
  for (int t = 0; t < 4; ++t) arena.Step({kStay, kWest});
  EXPECT_THAT(arena.Status(), ElementsAre(kArrived, kAlive));
}

TEST(UavRules, NearerThanHalfAMetreIsThere) {
  const UavOptions options = {.team_share = 0, .progress_reward = 1};
  Arena arena(kNavigate, {{8.51, 5.5, 9, 5}, {12.5, 5.5, 13, 5}}, {}, options);
  // 0.99 - 0.5 = 0.49: there. The other is 1 away, then just half a metre: not there.
  EXPECT_FALSE(arena.Step({kEast, kEast}));
  EXPECT_THAT(arena.Status(), ElementsAre(kArrived, kAlive));
  EXPECT_NEAR(arena.reward()[0], 0.5 + 5 - 0.02, 1e-5);
  EXPECT_NEAR(arena.reward()[1], 0.5 - 0.02, 1e-5);
  EXPECT_TRUE(arena.Step({kEast, kEast}));
  EXPECT_THAT(arena.Status(), ElementsAre(kArrived, kArrived));
  EXPECT_EQ(arena.reward()[0], 0);
  EXPECT_EQ(arena.Metrics()[0], 1);
}

TEST(UavRules, AUavThatCrashesDoesNotArrive) {
  Arena arena(kNavigate, {{8.5, 5.5, 9, 5}, {9.8, 5.5, 9, 5}});
  EXPECT_TRUE(arena.Step({kEast, kWest}));  // 0.3 apart, both near the target.
  EXPECT_THAT(arena.Status(), ElementsAre(kCrashed, kCrashed));
}

TEST(UavRules, TheTeamSharesItsRewards) {
  Arena arena(
      kNavigate, {{0.5, 5.5}, {8.6, 5.5, 9, 5}, {3.5, 5.5}, {15.5, 15.5}}, {},
      {.team_share = 0.25, .progress_reward = 0, .target_reward = 3, .collision_penalty = 7, .step_penalty = 1});
  arena.Step({kWest, kEast, kStay, kStay});
  // Own: -8, 2, -1, -1, together -8; 0.75 own + 0.25 * -8 / 4.
  EXPECT_THAT(arena.reward(), ElementsAre(-6.5f, 1, -1.25f, -1.25f));
  arena.Step({kStay, kStay, kStay, kStay});
  EXPECT_THAT(arena.reward(), ElementsAre(-0.125f, -0.125f, -0.875f, -0.875f));  // 0.75 * -1 or 0, + 0.25 * -2 / 4
}

TEST(UavRules, TwoThatComeToANewCellShareIt) {
  Arena arena(kCover, {{4.6, 5.3}, {6.2, 5.75}, {9.8, 9.5}, {12.6, 9.5}}, {{13, 9}});
  // Into (5, 5) from both sides, 0.6 apart; into (10, 9); into an obstacle.
  arena.Step({kEast, kWest, kEast, kEast});
  EXPECT_THAT(arena.reward(), ElementsAre(0.5f - 0.02f, 0.5f - 0.02f, 1 - 0.02f, -5.02f));
  EXPECT_FLOAT_EQ(arena.Metrics()[1], 2.0f / 399);
  arena.Step({kStay, kStay, kStay, kStay});
  EXPECT_THAT(arena.reward(), ElementsAre(-0.02f, -0.02f, -0.02f, 0));
}

TEST(UavRules, CoveringEndsWhenAllIsVisited) {
  const UavOptions options = {.uavs = 1, .obstacles = 1, .size = 2, .radius = 0.1, .speed = 1};
  const std::unique_ptr<Env> env = MakeUavEnv(kCover, options).value();
  std::vector<double> state(env->spec().state_size);
  state[2] = 8;  // The obstacle is in cell 3; the UAV starts in 0.
  state[3] = 1;
  state[4] = state[5] = 0.5;
  env->LoadState(state.data());
  const float actions[] = {kEast, kWest, kNorth};
  float reward = 0, metrics[3];
  EXPECT_FALSE(env->Step(&actions[0], &reward));
  EXPECT_FALSE(env->Step(&actions[1], &reward));
  EXPECT_TRUE(env->Step(&actions[2], &reward));
  env->EpisodeMetrics(metrics);
  EXPECT_THAT(metrics, ElementsAre(0, 1, 0));
}

TEST(UavRules, AVelocityIsNoLongerThanFullSpeed) {
  Arena arena(kNavigate, {{5.5, 5.5}, {9.5, 9.5}, {15.5, 15.5}}, {}, {.speed = 0.4, .continuous = true});
  arena.Step({1, 1, 0.5f, -0.25f, 0.6f, -0.8f});
  const std::vector<double> state = arena.State();
  const auto at = [&](int n, int number) { return state[arena.layout().saved_uavs + n * 8 + number]; };
  EXPECT_NEAR(at(0, 2), 0.4 * std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(at(0, 3), 0.4 * std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(at(1, 0), 9.7, 1e-6);
  EXPECT_NEAR(at(1, 1), 9.4, 1e-6);
  EXPECT_NEAR(at(1, 5), 0.4 * std::sqrt(0.3125), 1e-6);  // Flown: sqrt(0.25 + 0.0625).
  EXPECT_NEAR(at(2, 5), 0.4, 1e-6);
}

TEST(UavRules, FeelersTellWhichHeadingsCrash) {
  // North ends at 5.9, 0.1 below an obstacle; west within one.
  Arena arena(kNavigate, {{5.5, 5.4}}, {{5, 6}, {4, 5}});
  const std::vector<float> feelers = arena.Observation(0, arena.layout().obs_feelers, 8);
  // North-east (5.854, 5.754) stays 0.246 below it. North-west (5.146, 5.754) and south-west (5.146, 5.046) are 0.146
  // from the other one.
  EXPECT_THAT(feelers, ElementsAre(0, 0, 1, 1, 1, 1, 0, 0));
}

TEST(UavRules, NeighboursAreTheNearestInOrder) {
  UavOptions options = {.neighbours = 2};
  Arena arena(kNavigate, {{5.5, 5.5}, {7.5, 5.5}, {5.5, 6.5}, {4.5, 5.5}, {5.5, 8.6}}, {}, options);
  // The third and the fourth are equally near; the last is 3.1 away, more than sensing_radius.
  const float third = 1.0f / 3;
  EXPECT_THAT(arena.Observation(0, arena.layout().obs_neighbours, 10),
              testing::Pointwise(testing::FloatNear(1e-6), std::vector<float>{0, third, 0, 0, 1, -third, 0, 0, 0, 1}));
  // The last one sees the third only, 2.1 south of it.
  EXPECT_THAT(arena.Observation(4, arena.layout().obs_neighbours, 10),
              testing::Pointwise(testing::FloatNear(1e-6), std::vector<float>{0, -0.7f, 0, 0, 1, 0, 0, 0, 0, 0}));
}

TEST(UavRules, PathRatioIsFlownOverShortest) {
  // From the middle of (5, 5) around an obstacle in (6, 5) to (7, 5). Its corners may not be cut: 1 + 2 + 1 over the
  // cells (5, 6), (6, 6), (7, 6).
  Arena arena(kNavigate, {{5.5, 5.5, 7, 5}}, {{6, 5}});
  for (const Choice choice : {kNorth, kNorth, kEast, kEast, kEast, kEast}) arena.Step({static_cast<float>(choice)});
  EXPECT_FALSE(arena.Step({kSouth}));  // (7.5, 6): half a metre away.
  EXPECT_TRUE(arena.Step({kSouth}));
  EXPECT_FLOAT_EQ(arena.Metrics()[3], 1.0f);  // 8 steps of 0.5 m over 4 m.
}

TEST(UavRules, ThereIsNoTimeLeftAfterTheWorldsOwnLimit) {
  Arena arena(kNavigate, {{5.5, 5.5}});
  EXPECT_EQ(arena.Observation(0, arena.layout().obs_time, 1)[0], 1);
  for (int t = 0; t < 150; ++t) arena.Step({kStay});
  EXPECT_EQ(arena.Observation(0, arena.layout().obs_time, 1)[0], 0.25f);
  for (int t = 0; t < 100; ++t) arena.Step({kStay});
  EXPECT_EQ(arena.Observation(0, arena.layout().obs_time, 1)[0], 0);
}

TEST(ShortestPath, GoesAroundAndDoesNotCutCorners) {
  const char* const map =
      "########"
      "#..#...#"
      "#..#.#.#"
      "#....#.#"
      "######.#"
      "#.#....#"
      "########";
  std::vector<uint8_t> occupied;
  for (const char* c = map; *c != 0; ++c) occupied.push_back(*c == '#');
  ShortestPath path(static_cast<int>(occupied.size()));
  const auto at = [](int i, int j) { return 8 * j + i; };
  EXPECT_EQ(path.Length(occupied.data(), 8, at(1, 1), at(1, 1)), 0);
  EXPECT_FLOAT_EQ(path.Length(occupied.data(), 8, at(1, 1), at(2, 3)), 1 + std::sqrt(2.0f));
  // Down beside (3, 1) and (3, 2): (2, 3), (3, 3), (4, 3), (4, 2).
  EXPECT_FLOAT_EQ(path.Length(occupied.data(), 8, at(2, 2), at(4, 2)), 4);
  // On from there: (4, 1), (5, 1), (6, 1), (6, 2) ... (6, 5), (3, 5); corners are all cut by obstacles.
  EXPECT_FLOAT_EQ(path.Length(occupied.data(), 8, at(2, 2), at(3, 5)), 4 + 1 + 2 + 4 + 3);
  EXPECT_EQ(path.Length(occupied.data(), 8, at(1, 1), at(1, 5)), std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace skein
