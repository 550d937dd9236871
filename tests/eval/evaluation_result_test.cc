// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation_result.h"

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

EvaluationResult Example() {
  return {.env_id = "CartPole-v1",
          .checkpoint = "runs/a/checkpoints/step_000000000010",
          .digest = "00ff",
          .env_steps = 10,
          .seed = 3,
          .mujoco_version = "2.2.2",
          .returns = {10, 20, 60},
          .lengths = {1, 2, 6},
          .warnings = {"skipped step_000000000020: damaged"}};
}

TEST(SpreadOf, IsMeanAndPopulationDeviation) {
  // Mean (10 + 20 + 60) / 3 = 30; variance (400 + 100 + 900) / 3 = 466.67, its root 21.602.
  const Spread spread = SpreadOf({10, 20, 60});
  EXPECT_DOUBLE_EQ(spread.mean, 30);
  EXPECT_NEAR(spread.deviation, 21.602, 1e-3);
  EXPECT_EQ(spread.min, 10);
  EXPECT_EQ(spread.max, 60);
  EXPECT_EQ(SpreadOf({}).mean, 0);
}

TEST(EvaluationResult, ReadsBackFromItsJson) {
  const std::string text = ToJson(Example());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["episodes"], 3);
  EXPECT_EQ(json["return_mean"], 30.0);
  EXPECT_EQ(json["length_mean"], 3.0);
  const auto read = EvaluationFromJson(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read), text);
}

TEST(EvaluationResult, TellsHowManyEpisodesFailed) {
  EXPECT_EQ(FailedEpisodesText(Example()), "");
  EvaluationResult result = Example();
  result.failed_episodes = 2;
  const std::string text = ToJson(result);
  EXPECT_EQ(nlohmann::json::parse(text)["failed_episodes"], 2);
  EXPECT_EQ(nlohmann::json::parse(text)["episodes"], 3);
  EXPECT_EQ(ToJson(EvaluationFromJson(text).value()), text);
  EXPECT_EQ(FailedEpisodesText(result),
            "2 of 5 episodes failed and are left out: a reward or an observation was not finite or beyond 1e+06, "
            "or the environment failed, of which the log says more");
}

TEST(EvaluationResult, TellsABaselineFromACheckpoint) {
  EXPECT_EQ(nlohmann::json::parse(ToJson(Example()))["policy"], "checkpoint");
  EvaluationResult result = Example();
  result.policy = "greedy";
  EXPECT_EQ(EvaluationFromJson(ToJson(result))->policy, "greedy");
}

TEST(EvaluationResult, TellsAnEnvironmentsOwnMetrics) {
  EvaluationResult result = Example();
  result.metrics = {{"success_rate", {0.5, 1, 1}}};
  const std::string text = ToJson(result);
  EXPECT_NEAR(nlohmann::json::parse(text)["metrics_mean"]["success_rate"].get<double>(), 2.5 / 3, 1e-9);
  EXPECT_EQ(ToJson(EvaluationFromJson(text).value()), text);
  EXPECT_EQ(
      FormatEvaluation(result),
      "return 30.0 +- 21.6 (min 10.0, max 60.0), length 3, success_rate 0.833, 3 episodes, CartPole-v1, MuJoCo 2.2.2");
}

TEST(EvaluationResult, HasUnclippedReturnsBesideTheOthers) {
  EXPECT_FALSE(nlohmann::json::parse(ToJson(Example())).contains("unclipped_return_mean"));
  EvaluationResult result = Example();
  result.unclipped_returns = {8, 19, 57};  // Mean 28; squares of deviations 400, 81, 841, a third of the sum 440.67.
  result.unclipped_metrics = {{"reward_ctrl", {-1, -2, -6}}};
  const std::string text = ToJson(result);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["unclipped_return_mean"], 28.0);
  EXPECT_EQ(json["unclipped_metrics_mean"]["reward_ctrl"], -3.0);
  EXPECT_NEAR(json["unclipped_return_std"].get<double>(), 20.992, 1e-3);
  EXPECT_EQ(ToJson(EvaluationFromJson(text).value()), text);
  EXPECT_EQ(FormatEvaluation(result),
            "return 30.0 +- 21.6 (min 10.0, max 60.0), unclipped 28.0 +- 21.0, unclipped reward_ctrl -3.000, length 3, "
            "3 episodes, CartPole-v1, MuJoCo 2.2.2");
}

TEST(EvaluationResult, FromOtherTextIsDataLoss) {
  for (const char* text : {"", "[]", "{}", "{\"env_id\": 3}", "not json"}) {
    EXPECT_TRUE(absl::IsDataLoss(EvaluationFromJson(text).status())) << text;
  }
}

TEST(EvaluationResult, IsOneLineForPeople) {
  EXPECT_EQ(FormatEvaluation(Example()),
            "return 30.0 +- 21.6 (min 10.0, max 60.0), length 3, 3 episodes, CartPole-v1, MuJoCo 2.2.2");
}

}  // namespace
}  // namespace skein
