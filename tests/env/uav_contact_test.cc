// SPDX-License-Identifier: Apache-2.0
// Contacts of the UAV world against a search in double precision at a hundred moments of each step, over random teams
// of every accepted speed and radius. SKEIN_UAV_CONTACT_STEPS is how many steps of UAVs are compared:
//
//     SKEIN_UAV_CONTACT_STEPS=10000000 build/release/tests/env_tests --gtest_filter='UavContacts.*'
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "env/uav/uav_world.h"

namespace skein {
namespace {

constexpr int kMoments = 100;
// Positions are float32, whose steps are 7.6e-6 between 64 and 128.
constexpr double kResolution = 1e-5;

struct Point {
  double x, y;
};

struct Flight {
  Point from, to;
  Point At(double t) const { return {from.x + t * (to.x - from.x), from.y + t * (to.y - from.y)}; }
};

double Apart(Point a, Point b) { return std::hypot(a.x - b.x, a.y - b.y); }

double FromCell(Point p, int i, int j) {
  return std::hypot(std::max({i - p.x, p.x - (i + 1), 0.0}), std::max({j - p.y, p.y - (j + 1), 0.0}));
}

// The smallest value of a convex function on [0, 1], by ternary search.
template <typename Function>
double Least(Function function) {
  double low = 0, high = 1;
  for (int round = 0; round < 80; ++round) {
    const double left = low + (high - low) / 3, right = high - (high - low) / 3;
    (function(left) < function(right) ? high : low) = function(left) < function(right) ? right : left;
  }
  return std::min({function(0), function(1), function((low + high) / 2)});
}

// Plays episodes of one random team and compares each step.
class Comparison {
 public:
  explicit Comparison(RandomStream& random) : random_(random) {
    options_.size = random.Below(20) == 0 ? 128 : 4 + static_cast<int>(random.Below(9));
    const int cells = options_.size * options_.size;
    options_.uavs = 1 + static_cast<int>(random.Below(12));
    options_.uavs = std::min(options_.uavs, cells / 4);
    options_.obstacles = static_cast<int>(random.Below(cells / 2 - 2 * options_.uavs + 1));
    options_.radius = std::exp(random.Uniform(std::log(0.001), std::log(0.49)));
    const double speeds[] = {1, random.Uniform(0.001, 1), std::exp(random.Uniform(std::log(0.001), 0))};
    options_.speed = speeds[random.Below(3)];
    options_.continuous = random.Below(2) == 0;
    if (random.Below(8) == 0) options_.radius = 0.49;
  }

  // Ends after `steps` steps of UAVs at the latest.
  void Play(int64_t steps) {
    ASSERT_TRUE(CheckUavOptions(options_).ok());
    UavWorld world(UavTask::kNavigate, options_, 1);
    layout_ = MakeUavLayout(UavTask::kNavigate, options_);
    for (int episode = 0; episode < 20 && compared_ < steps; ++episode) {
      world.Reset(0, random_);
      bool ended = false;
      for (int t = 0; t < 20 && !ended; ++t) ended = Step(world);
    }
  }

  int64_t compared() const { return compared_; }
  int64_t contacts() const { return contacts_; }
  int64_t undetected() const { return undetected_; }
  int64_t invented() const { return invented_; }
  // Contacts that neither end of the step shows.
  int64_t between() const { return between_; }

 private:
  bool Step(UavWorld& world) {
    std::vector<double> before(layout_.saved_size), after(layout_.saved_size);
    std::vector<float> reward(options_.uavs), action(options_.uavs * (options_.continuous ? 2 : 1));
    for (int n = 0; n < options_.uavs; ++n) {
      if (!options_.continuous) {
        action[n] = static_cast<float>(random_.Below(kUavChoices));
        continue;
      }
      const double heading = random_.Uniform(0, 2 * M_PI), speed = random_.Uniform(0, 1.5);
      action[2 * n] = static_cast<float>(speed * std::cos(heading));
      action[2 * n + 1] = static_cast<float>(speed * std::sin(heading));
    }
    world.SaveState(0, before.data());
    const bool ended = world.Step(0, action.data(), reward.data());
    world.SaveState(0, after.data());
    std::vector<Flight> flights;
    std::vector<bool> crashed;
    for (int n = 0; n < options_.uavs; ++n) {
      const size_t at = layout_.saved_uavs + n * kUavSavedDoubles;
      if (before[at + 4] != 0) continue;
      flights.push_back({{before[at], before[at + 1]}, {after[at], after[at + 1]}});
      crashed.push_back(after[at + 4] == 2);
    }
    for (size_t n = 0; n < flights.size(); ++n) Compare(before, flights, n, crashed[n]);
    return ended;
  }

  bool Occupied(const std::vector<double>& state, int i, int j) const {
    if (i < 0 || j < 0 || i >= options_.size || j >= options_.size) return true;
    const int cell = j * options_.size + i;
    return (static_cast<uint32_t>(state[layout_.saved_obstacles + cell / 32]) >> cell % 32 & 1) != 0;
  }

  void Compare(const std::vector<double>& state, const std::vector<Flight>& flights, size_t n, bool crashed) {
    const Flight& flight = flights[n];
    const double radius = double{static_cast<float>(options_.radius)};
    std::vector<std::pair<int, int>> cells;
    const int i = static_cast<int>(std::floor(flight.from.x)), j = static_cast<int>(std::floor(flight.from.y));
    for (int b = j - 2; b <= j + 2; ++b) {
      for (int a = i - 2; a <= i + 2; ++a) {
        if (Occupied(state, a, b)) cells.emplace_back(a, b);
      }
    }
    std::vector<const Flight*> others;
    for (size_t other = 0; other < flights.size(); ++other) {
      if (other != n && Apart(flight.from, flights[other].from) < 4) others.push_back(&flights[other]);
    }
    // Deepest at a moment t, in metres; less than 0 = no contact.
    const auto depth = [&](double t) {
      double deepest = -1;
      const Point place = flight.At(t);
      for (const auto& [a, b] : cells) deepest = std::max(deepest, radius - FromCell(place, a, b));
      for (const Flight* other : others) deepest = std::max(deepest, 2 * radius - Apart(place, other->At(t)));
      return deepest;
    };
    double deepest = -1;
    for (int moment = 0; moment <= kMoments; ++moment) {
      deepest = std::max(deepest, depth(static_cast<double>(moment) / kMoments));
    }
    ++compared_;
    contacts_ += crashed;
    if (crashed && depth(0) < 0 && depth(1) < 0) ++between_;
    if (!crashed && deepest > kResolution) ++undetected_;
    if (!crashed || deepest > -kResolution) return;
    // Too short for the moments?
    double gap = 1;
    for (const auto& [a, b] : cells) {
      gap = std::min(gap, Least([&](double t) { return FromCell(flight.At(t), a, b); }) - radius);
    }
    for (const Flight* other : others) {
      gap = std::min(gap, Least([&](double t) { return Apart(flight.At(t), other->At(t)); }) - 2 * radius);
    }
    if (gap > kResolution) ++invented_;
  }

  RandomStream& random_;
  UavOptions options_;
  UavLayout layout_;
  int64_t compared_ = 0, contacts_ = 0, undetected_ = 0, invented_ = 0, between_ = 0;
};

TEST(UavContacts, NoneIsMissedAndNoneIsInvented) {
  const char* const wanted = std::getenv("SKEIN_UAV_CONTACT_STEPS");
  const int64_t steps = wanted == nullptr ? 100'000 : std::atoll(wanted);
  ASSERT_GT(steps, 0) << "SKEIN_UAV_CONTACT_STEPS";
  int64_t compared = 0, contacts = 0, undetected = 0, invented = 0, between = 0;
  for (uint64_t team = 0; compared < steps; ++team) {
    RandomStream random(3, RandomPurpose::kEvaluation, team, 0);
    Comparison comparison(random);
    comparison.Play(steps - compared);
    ASSERT_GT(comparison.compared(), 0);
    compared += comparison.compared();
    contacts += comparison.contacts();
    undetected += comparison.undetected();
    invented += comparison.invented();
    between += comparison.between();
  }
  std::printf("%lld steps of UAVs: %lld with a contact (%lld seen at neither end), %lld undetected, %lld invented\n",
              static_cast<long long>(compared), static_cast<long long>(contacts), static_cast<long long>(between),
              static_cast<long long>(undetected), static_cast<long long>(invented));
  EXPECT_EQ(undetected, 0);
  EXPECT_EQ(invented, 0);
  EXPECT_GT(between, contacts / 100);  // Else this compares what the ends show.
}

}  // namespace
}  // namespace skein
