// SPDX-License-Identifier: Apache-2.0
#include "coordinator/assignment.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(Assignment, IsEmptyWithoutALearner) {
  Assignment assignment;
  assignment.Update({}, {"actor-1"});
  EXPECT_EQ(assignment.LearnerOf("actor-1"), "");
  EXPECT_EQ(assignment.LearnerOf("nobody"), "");
}

TEST(Assignment, GivesEachActorTheLearnerWithTheFewest) {
  Assignment assignment;
  assignment.Update({"a", "b"}, {"1", "2", "3"});
  // 1 -> a (0, 0), 2 -> b (1, 0), 3 -> a (1, 1: the first by id).
  EXPECT_EQ(assignment.LearnerOf("1"), "a");
  EXPECT_EQ(assignment.LearnerOf("2"), "b");
  EXPECT_EQ(assignment.LearnerOf("3"), "a");
}

TEST(Assignment, KeepsAnActorWithItsLearnerWhenAnotherComes) {
  Assignment assignment;
  assignment.Update({"b"}, {"1", "2"});
  assignment.Update({"a", "b"}, {"1", "2", "3"});
  EXPECT_EQ(assignment.LearnerOf("1"), "b");
  EXPECT_EQ(assignment.LearnerOf("2"), "b");
  EXPECT_EQ(assignment.LearnerOf("3"), "a");
}

TEST(Assignment, MovesOnlyTheActorsOfALostLearner) {
  Assignment assignment;
  assignment.Update({"a", "b", "c"}, {"1", "2", "3"});  // 1 -> a, 2 -> b, 3 -> c
  assignment.Update({"a", "c"}, {"1", "2", "3"});
  EXPECT_EQ(assignment.LearnerOf("1"), "a");
  EXPECT_EQ(assignment.LearnerOf("2"), "a");
  EXPECT_EQ(assignment.LearnerOf("3"), "c");
}

TEST(Assignment, CountsNoDepartedActors) {
  Assignment assignment;
  assignment.Update({"a", "b"}, {"1", "2", "3"});  // a: 1, 3; b: 2
  assignment.Update({"a", "b"}, {"2", "4"});       // a: none, so 4 -> a
  EXPECT_EQ(assignment.LearnerOf("1"), "");
  EXPECT_EQ(assignment.LearnerOf("4"), "a");
}

TEST(Assignment, StaysBalancedOverManyActors) {
  Assignment assignment;
  std::set<std::string> actors;
  std::map<std::string, int> load;
  for (int i = 0; i < 100; ++i) {
    actors.insert("actor-" + std::to_string(i));
    assignment.Update({"a", "b", "c"}, actors);
  }
  for (const std::string& actor : actors) ++load[assignment.LearnerOf(actor)];
  EXPECT_EQ(load["a"] + load["b"] + load["c"], 100);
  for (const char* learner : {"a", "b", "c"}) EXPECT_NEAR(load[learner], 100 / 3.0, 1);
}

}  // namespace
}  // namespace skein
