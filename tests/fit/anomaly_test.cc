// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/anomaly.h"

#include <gtest/gtest.h>

#include <vector>

namespace skein {
namespace {

v1::FitDetectConfig Detect(double false_alarms) {
  v1::FitDetectConfig detect;
  detect.set_rule(v1::DETECT_RULE_PROBABILITY);
  detect.set_false_alarms(false_alarms);
  return detect;
}

// 100 sequences: 10 with probability .01 and rank 5, 90 with .2 and rank 1.
const std::vector<HeldOutScore> kScores = {{0.01f, 5, 10}, {0.2f, 1, 90}};

TEST(ChooseLimits, LetsNoMoreHeldOutSequencesBeAnomalousThanAllowed) {
  const Limits none = ChooseLimits(Detect(0.09), kScores, 20).limits;  // 9 are allowed, the worst are 10.
  EXPECT_FALSE(none.IsAnomalous({0.01f, 5}));
  EXPECT_TRUE(none.IsAnomalous({0.0099f, 5}));
  EXPECT_EQ(none.top_g, 6);
  const Limits ten = ChooseLimits(Detect(0.1), kScores, 20).limits;
  EXPECT_TRUE(ten.IsAnomalous({0.01f, 5}));
  EXPECT_FALSE(ten.IsAnomalous({0.2f, 1}));
  EXPECT_EQ(ten.top_g, 2);
}

TEST(ChooseLimits, FindsUnknownKeysAnomalousInAnyCase) {
  const KeyJudgement unknown{0, 20, true};
  for (const auto& scores : {kScores, std::vector<HeldOutScore>{{0, 20, 100}}, std::vector<HeldOutScore>{}}) {
    Limits limits = ChooseLimits(Detect(0), scores, 20).limits;
    EXPECT_TRUE(limits.IsAnomalous(unknown));
    limits.rule = v1::DETECT_RULE_TOP_G;
    EXPECT_TRUE(limits.IsAnomalous(unknown));
  }
  Limits all;  // More than there are keys.
  all.rule = v1::DETECT_RULE_TOP_G;
  all.top_g = 100;
  EXPECT_TRUE(all.IsAnomalous(unknown));
}

TEST(ChooseLimits, LeavesOutSequencesWithUnknownKeys) {
  std::vector<HeldOutScore> scores = kScores;
  scores.push_back({0, 20, 3, true});
  const LimitChoice choice = ChooseLimits(Detect(0), scores, 20);
  EXPECT_EQ(choice.sequences, 100);
  EXPECT_EQ(choice.unknown, 3);
  EXPECT_TRUE(choice.limits.IsAnomalous({0.0099f, 6}));
  EXPECT_FALSE(choice.limits.IsAnomalous({0.01f, 5}));
  EXPECT_EQ(choice.limits.top_g, 6);
  EXPECT_EQ(ChooseLimits(Detect(0), {{0, 20, 3, true}}, 20).sequences, 0);
}

TEST(ChooseLimits, TakesWhatIsSet) {
  v1::FitDetectConfig detect = Detect(0);
  detect.set_probability(0.5);
  detect.set_top_g(3);
  const Limits limits = ChooseLimits(detect, kScores, 20).limits;
  EXPECT_TRUE(SetsLimit(detect));
  EXPECT_FALSE(SetsLimit(Detect(0)));
  EXPECT_EQ(limits.probability, 0.5);
  EXPECT_EQ(limits.top_g, 3);
}

TEST(EndOfRowsTogether, BoundsWhatAPassKeeps) {
  const NetLayout layout(2000, 16, 16, 1);
  SequenceBatch batch;
  for (int row = 0; row < 100; ++row) {
    batch.rows.classes.insert(batch.rows.classes.end(), 500, 2);
    batch.rows.begins.push_back(static_cast<uint32_t>(batch.rows.classes.size()));
    batch.rows.cut.push_back(0);
  }
  // 501 places of 2,112 floats each, so 15 rows in 64 MiB.
  EXPECT_EQ(EndOfRowsTogether(layout, batch, 0), 15);
  EXPECT_EQ(EndOfRowsTogether(layout, batch, 15), 30);
  EXPECT_EQ(EndOfRowsTogether(layout, batch, 90), 100);
  const NetLayout large(1 << 20, 16, 16, 1);
  EXPECT_EQ(EndOfRowsTogether(large, batch, 7), 8) << "one at least";
}

TEST(WorstOf, IsTheLeastProbabilityAndTheGreatestRank) {
  const std::vector<KeyJudgement> keys = {{0.5f, 0}, {0.1f, 2}, {0.2f, 4}};
  const HeldOutScore score = WorstOf(keys, 7);
  EXPECT_EQ(score.least_probability, 0.1f);
  EXPECT_EQ(score.greatest_rank, 4);
  EXPECT_EQ(score.weight, 7);
  EXPECT_FALSE(score.has_unknown);
  EXPECT_TRUE(WorstOf(std::vector<KeyJudgement>{{0.5f, 0}, {0, 9, true}}, 1).has_unknown);
}

}  // namespace
}  // namespace skein
