// SPDX-License-Identifier: Apache-2.0
#include "sweep/sampler.h"

#include <cmath>
#include <set>

#include "gmock/gmock.h"
#include "sweep/suggester.h"

namespace skein {
namespace {

using testing::ElementsAre;

Parameter Choice(const std::string& path, int count) {
  Parameter one;
  one.path = path;
  for (int i = 0; i < count; ++i) one.choices.push_back(std::to_string(i));
  return one;
}

Parameter Number(Parameter::Kind kind, double low, double high, bool log = false, int64_t step = 1,
                 uint32_t points = 0) {
  Parameter one;
  one.path = "a";
  one.kind = kind;
  one.low = low;
  one.high = high;
  one.log = log;
  one.step = step;
  one.points = points;
  return one;
}

const Admits kAll = [](const Point&) { return true; };

TEST(Grid, ChangesTheLastParameterFastestAndCountsTheUnusedOnce) {
  Space space;
  space.parameters = {Choice("a", 2), Choice("b", 2)};
  space.parameters[1].when = Parameter::Condition{0, {1.0}};
  const auto points = GridPoints(space, kAll);
  ASSERT_TRUE(points.ok());
  // a = 0: b is not in use.
  EXPECT_THAT(*points, ElementsAre(Point{0.0, std::nullopt}, Point{1.0, 0.0}, Point{1.0, 1.0}));
  const auto some = GridPoints(space, [](const Point& point) { return point[1] != 0.0; });
  EXPECT_EQ(some->size(), 2u);
}

TEST(Grid, HasTheBoundsOfNumbers) {
  const Parameter real = Number(Parameter::Kind::kReal, 1e-4, 1e-2, true, 1, 3);
  EXPECT_EQ(GridSize(real), 3u);
  EXPECT_EQ(GridValue(real, 0), 1e-4);
  EXPECT_NEAR(GridValue(real, 1), 1e-3, 1e-15);
  EXPECT_EQ(GridValue(real, 2), 1e-2);
  // 2, 5, 8: 11 is beyond.
  const Parameter whole = Number(Parameter::Kind::kInteger, 2, 10, false, 3);
  EXPECT_EQ(GridSize(whole), 3u);
  EXPECT_EQ(GridValue(whole, 2), 8);
}

TEST(Grid, RefusesMoreThanAMillionPoints) {
  Space space;
  space.parameters.assign(3, Choice("a", 101));  // 1,030,301.
  EXPECT_TRUE(absl::IsInvalidArgument(GridPoints(space, kAll).status()));
}

TEST(Draws, KeepToTheBoundsAndReachThem) {
  Space space;
  space.parameters = {Number(Parameter::Kind::kReal, 1e-4, 1e-2, true),
                      Number(Parameter::Kind::kInteger, 2, 10, false, 4),
                      Number(Parameter::Kind::kInteger, 1, 1000, true), Choice("c", 3)};
  std::set<double> integers, choices;
  double below_middle = 0;
  constexpr uint32_t kCount = 2000;
  for (uint32_t i = 0; i < kCount; ++i) {
    const auto point = DrawPoint(space, 7, i, kAll);
    ASSERT_TRUE(point);
    EXPECT_GE(*(*point)[0], 1e-4);
    EXPECT_LE(*(*point)[0], 1e-2);
    if (*(*point)[0] < 1e-3) ++below_middle;
    integers.insert(*(*point)[1]);
    EXPECT_EQ(*(*point)[2], std::round(*(*point)[2]));
    EXPECT_GE(*(*point)[2], 1);
    EXPECT_LE(*(*point)[2], 1000);
    choices.insert(*(*point)[3]);
  }
  EXPECT_THAT(integers, ElementsAre(2, 6, 10));
  EXPECT_THAT(choices, ElementsAre(0, 1, 2));
  // Half of a logarithmic range lies below its geometric mean; five standard deviations of a binomial are 112.
  EXPECT_NEAR(below_middle, kCount / 2.0, 112);
}

TEST(Draws, DependOnTheTrialAndNotOnOtherParameters) {
  Space one, two;
  one.parameters = {Number(Parameter::Kind::kReal, 0, 1)};
  two.parameters = {Number(Parameter::Kind::kReal, 0, 1), Choice("c", 3)};
  EXPECT_EQ((*DrawPoint(one, 7, 3, kAll))[0], (*DrawPoint(two, 7, 3, kAll))[0]);
  EXPECT_NE(DrawPoint(one, 7, 3, kAll), DrawPoint(one, 7, 4, kAll));
  EXPECT_NE(DrawPoint(one, 7, 3, kAll), DrawPoint(one, 8, 3, kAll));
}

TEST(RandomSuggester, GivesNoPointTwiceAndEndsWithTheSpace) {
  Space space;
  space.parameters = {Choice("a", 3), Choice("b", 2)};
  RandomSuggester suggester(space, 1, [](const Point& point) { return point[0] != 2.0; });
  std::vector<Trial> trials;
  std::set<Point> seen;
  while (true) {
    const auto point = suggester.Suggest(trials);
    ASSERT_TRUE(point.ok());
    if (!*point) break;
    EXPECT_TRUE(seen.insert(**point).second);
    Trial trial;
    trial.number = static_cast<uint32_t>(trials.size());
    trial.point = **point;
    trials.push_back(trial);
  }
  EXPECT_EQ(seen.size(), 4u);  // 2 x 2 that the constraint leaves.
}

TEST(Explore, KeepsToTheSpace) {
  Space space;
  space.parameters = {Number(Parameter::Kind::kReal, 1, 10), Number(Parameter::Kind::kInteger, 2, 10, false, 4),
                      Choice("c", 3)};
  for (uint32_t i = 0; i < 200; ++i) {
    const Point point = Explore(space, {9.9, 10.0, 0.0}, 1, i, 0.25, 1.2);
    EXPECT_GE(*point[0], 1);
    EXPECT_LE(*point[0], 10);
    EXPECT_TRUE(*point[1] == 2 || *point[1] == 6 || *point[1] == 10) << *point[1];
    EXPECT_LT(*point[2], 3);
  }
  // Never anew: 5 x 1.2 or 5 / 1.2.
  const double value = *Explore(space, {5.0, 6.0, 1.0}, 1, 0, 0, 1.2)[0];
  EXPECT_TRUE(value == 5 * 1.2 || value == 5 / 1.2) << value;
}

// 2 x 1.2 rounds to 2.
TEST(Explore, MovesSmallWholeNumbers) {
  Space space;
  space.parameters = {Number(Parameter::Kind::kInteger, 1, 8)};
  std::set<double> seen;
  for (uint32_t i = 0; i < 50; ++i) seen.insert(*Explore(space, {2.0}, 1, i, 0, 1.2)[0]);
  EXPECT_THAT(seen, ElementsAre(1, 3));
}

TEST(Explore, MeetsTheConstraints) {
  Space space;
  space.parameters = {Number(Parameter::Kind::kReal, 1, 10)};
  const Admits small = [](const Point& point) { return *point[0] <= 5; };
  for (uint32_t i = 0; i < 200; ++i) EXPECT_LE(*Explore(space, {5.0}, 1, i, 0.25, 1.2, small)[0], 5);
  // Nothing is admitted: the donor's own.
  EXPECT_EQ(*Explore(space, {5.0}, 1, 0, 0.25, 1.2, [](const Point&) { return false; })[0], 5);
}

}  // namespace
}  // namespace skein
