// SPDX-License-Identifier: Apache-2.0
// What `skein bench learner --learners` makes of what its ranks say, and how large its networks are.
#include "bench/rank_report.h"

#include <algorithm>
#include <cstdlib>

#include "bench/network_size.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Json Alone(double seconds) {
  return {{"seconds", seconds}, {"samples", 1000}, {"updates", 2}, {"gradient_steps", 8}, {"device", "cpu"}};
}

Json Summing(double seconds, double all_reduce_seconds, double exposed_seconds) {
  Json rank = Alone(seconds);
  rank.update({{"all_reduces", 16},
               {"bytes_sent", 800},
               {"all_reduce_seconds", all_reduce_seconds},
               {"exposed_seconds", exposed_seconds}});
  return rank;
}

TEST(CombineRanks, ACrewTakesAsLongAsItsSlowestRank) {
  const Json row = CombineRanks({Summing(5, 0.4, 0.1), Summing(4, 0.8, 0.2)}, {Alone(2), Alone(2.5)});
  EXPECT_EQ(row["device"], "cpu");
  EXPECT_DOUBLE_EQ(row["samples_per_second"], 400);        // 2 x 1000 / 5
  EXPECT_DOUBLE_EQ(row["limit_samples_per_second"], 800);  // 2 x 1000 / 2.5
  EXPECT_DOUBLE_EQ(row["ratio"], 0.5);
  EXPECT_DOUBLE_EQ(row["seconds_per_update"], 2.5);         // 5 / 2
  EXPECT_DOUBLE_EQ(row["limit_seconds_per_update"], 1.25);  // 2.5 / 2
  EXPECT_DOUBLE_EQ(row["added_seconds_per_update"], 1.25);
  EXPECT_DOUBLE_EQ(row["gradient_steps_per_update"], 4);
  EXPECT_DOUBLE_EQ(row["added_microseconds_per_step"], 312500);      // 1.25 / 4
  EXPECT_DOUBLE_EQ(row["all_reduce_microseconds_per_step"], 75000);  // 1.2 / 16, the steps of both ranks
  EXPECT_NEAR(row["exposed_microseconds_per_step"], 18750, 1e-9);    // 0.3 / 16
  EXPECT_NEAR(row["hidden_share"], 0.75, 1e-12);                     // 1 - 0.3 / 1.2
  EXPECT_DOUBLE_EQ(row["all_reduces_per_step"], 2);
  EXPECT_DOUBLE_EQ(row["bytes_sent_per_step"], 100);
}

TEST(CombineRanks, NothingIsHiddenWhereItAllStartsAfterBackward) {
  EXPECT_EQ(CombineRanks({Summing(1, 0.1, 0.11)}, {Alone(1)})["hidden_share"], 0);
  EXPECT_EQ(CombineRanks({Summing(1, 0, 0)}, {Alone(1)})["hidden_share"], 0);
}

TEST(AddEfficiency, ComparesALearnerWithASingleOneThatSumsNothing) {
  std::vector<Json> rows = {{{"learners", 1}, {"samples_per_second", 90}, {"limit_samples_per_second", 100}},
                            {{"learners", 4}, {"samples_per_second", 320}, {"limit_samples_per_second", 390}}};
  AddEfficiency(kSampleRate, &rows);
  EXPECT_DOUBLE_EQ(rows[0]["efficiency"], 0.9);
  EXPECT_DOUBLE_EQ(rows[1]["efficiency"], 0.8);  // 320 / 4 / 100
  rows.erase(rows.begin());
  rows[0].erase("efficiency");
  AddEfficiency(kSampleRate, &rows);
  EXPECT_FALSE(rows[0].contains("efficiency"));
}

TEST(CombineFitRanks, ACrewTakesAsLongAsItsSlowestRank) {
  const auto rank = [](double seconds, double wait) {
    return Json{{"seconds", seconds}, {"tokens", 1000}, {"updates", 4}, {"data_wait_seconds", wait}, {"device", "cpu"}};
  };
  const Json row = CombineFitRanks({rank(5, 0.5), rank(4, 0.4)}, {rank(2, 0), rank(2.5, 0)});
  EXPECT_EQ(row["device"], "cpu");
  EXPECT_DOUBLE_EQ(row["tokens_per_second"], 400);        // 2 x 1000 / 5
  EXPECT_DOUBLE_EQ(row["limit_tokens_per_second"], 800);  // 2 x 1000 / 2.5
  EXPECT_DOUBLE_EQ(row["ratio"], 0.5);
  EXPECT_DOUBLE_EQ(row["seconds_per_step"], 1.25);         // 5 / 4
  EXPECT_DOUBLE_EQ(row["limit_seconds_per_step"], 0.625);  // 2.5 / 4
  EXPECT_DOUBLE_EQ(row["added_microseconds_per_step"], 625000);
  EXPECT_DOUBLE_EQ(row["data_wait_share"], 0.1);  // 0.9 / 9
  std::vector<Json> rows = {row, row};
  rows[0]["learners"] = 1;
  rows[1]["learners"] = 2;
  AddEfficiency(kTokenRate, &rows);
  EXPECT_DOUBLE_EQ(rows[1]["efficiency"], 0.25);  // 400 / 2 / 800
  EXPECT_EQ(SummarizeRanks(FitRankTable(), rows)["combinations"].size(), 2);
}

Json Row(int round, int learners, double rate) {
  return {{"round", round},     {"learners", learners},       {"parameters", 99},
          {"hidden", {4, 4}},   {"samples_per_second", rate}, {"limit_samples_per_second", 100},
          {"ratio", rate / 100}};
}

TEST(SummarizeRanks, HasTheMediansOfEachCombination) {
  const std::vector<Json> rows = {Row(1, 1, 40), Row(1, 2, 70), Row(2, 1, 50),
                                  Row(2, 2, 80), Row(3, 1, 90), Row(3, 2, 75)};
  const Json summary = SummarizeRanks(LearnerRankTable(), rows);
  ASSERT_EQ(summary["combinations"].size(), 2u);
  const Json& one = summary["combinations"][0];
  const Json& two = summary["combinations"][1];
  EXPECT_EQ(one["learners"], 1);
  EXPECT_EQ(one["hidden"], Json({4, 4}));
  EXPECT_EQ(one["samples_per_second"], 50);
  EXPECT_EQ(one["spread"]["samples_per_second"], (Json{{"min", 40.0}, {"max", 90.0}}));
  EXPECT_FALSE(one["spread"].contains("learners"));
  EXPECT_EQ(two["learners"], 2);
  EXPECT_EQ(two["parameters"], 99);
  EXPECT_EQ(two["samples_per_second"], 75);
  EXPECT_DOUBLE_EQ(two["ratio"], 0.75);
}

TEST(FormatRankReport, ShowsOneLineForEachCombination) {
  Report report;
  report.machine = {{"cpu", "abacus"}};
  report.rows = {Row(1, 1, 40), Row(1, 2, 7000)};
  report.summary = SummarizeRanks(LearnerRankTable(), report.rows);
  const std::string text = FormatRankReport(LearnerRankTable(), report, "Beads");
  EXPECT_THAT(text, AllOf(testing::StartsWith("Beads\nabacus"), HasSubstr("efficiency"), HasSubstr("\n          1"),
                          HasSubstr("\n          2          99      7,000")));
}

EnvSpec Spec(int obs_size, bool discrete, int action_size) {
  EnvSpec spec;
  spec.obs_size = obs_size;
  spec.discrete = discrete;
  spec.action_size = action_size;
  return spec;
}

v1::ModelConfig Model(const std::vector<uint32_t>& hidden, bool shared_trunk = false) {
  v1::ModelConfig model;
  model.mutable_hidden()->Add(hidden.begin(), hidden.end());
  model.set_shared_trunk(shared_trunk);
  return model;
}

TEST(CountParameters, CountsPolicyValueAndLogStd) {
  // HalfCheetah: (18 x 64 + 65 x 64) x 2 + 65 x 6 + 65 x 1 + 6.
  EXPECT_EQ(CountParameters(Model({64, 64}), Spec(17, false, 6)), 11085);
  // One stack for both: 5 x 3 + 4 x 2 + 2 heads of (2 + 1) x 2 and (2 + 1) x 1; no log_std.
  EXPECT_EQ(CountParameters(Model({3, 2}, true), Spec(4, true, 2)), 15 + 8 + 6 + 3);
  EXPECT_EQ(CountParameters(Model({}), Spec(4, true, 2)), 5 * 2 + 5);
}

TEST(FitHiddenLayers, ComesAsNearAsOneWidthCan) {
  const EnvSpec spec = Spec(17, false, 6);
  for (const int64_t wanted : {1, 100, 11085, 1000000, 10000000}) {
    v1::ModelConfig model = Model({7, 9});
    FitHiddenLayers(wanted, spec, &model);
    ASSERT_EQ(model.hidden_size(), 2);
    const uint32_t width = model.hidden(0);
    ASSERT_EQ(model.hidden(1), width);
    const auto off = [&](uint32_t of) { return std::abs(CountParameters(Model({of, of}), spec) - wanted); };
    const uint32_t next = width < 256 ? 1 : 8;  // Wide layers are multiples of 8.
    EXPECT_EQ(width % next, 0u);
    EXPECT_LE(off(width), off(width + next)) << wanted;
    EXPECT_LE(off(width), off(std::max(width, next + 1) - next)) << wanted;
  }
  v1::ModelConfig model = Model({1});
  FitHiddenLayers(11085, spec, &model);
  EXPECT_THAT(std::vector<uint32_t>(model.hidden().begin(), model.hidden().end()), ElementsAre(256));
  model = Model({});
  FitHiddenLayers(11085, spec, &model);
  EXPECT_THAT(std::vector<uint32_t>(model.hidden().begin(), model.hidden().end()), ElementsAre(64, 64));
}

}  // namespace
}  // namespace skein
