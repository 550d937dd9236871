// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation_result.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/number/number_bounds.h"
#include "nlohmann/json.hpp"

namespace skein {

Spread SpreadOf(const std::vector<double>& values) {
  Spread spread;
  if (values.empty()) return spread;
  const double n = static_cast<double>(values.size());
  for (double value : values) spread.mean += value;
  spread.mean /= n;
  double variance = 0;
  for (double value : values) variance += (value - spread.mean) * (value - spread.mean) / n;
  spread.deviation = std::sqrt(variance);
  spread.min = *std::min_element(values.begin(), values.end());
  spread.max = *std::max_element(values.begin(), values.end());
  return spread;
}

namespace {

nlohmann::ordered_json MeansOf(const std::map<std::string, std::vector<double>>& metrics) {
  nlohmann::ordered_json means = nlohmann::ordered_json::object();
  for (const auto& [name, values] : metrics) means[name] = SpreadOf(values).mean;
  return means;
}

}  // namespace

std::string ToJson(const EvaluationResult& result) {
  const Spread returns = SpreadOf(result.returns);
  const Spread lengths = SpreadOf({result.lengths.begin(), result.lengths.end()});
  nlohmann::ordered_json json = {
      {"env_id", result.env_id},
      {"policy", result.policy},
      {"checkpoint", result.checkpoint},
      {"digest", result.digest},
      {"env_steps", result.env_steps},
      {"seed", result.seed},
      {"mujoco_version", result.mujoco_version},
      {"episodes", result.returns.size()},
      {"failed_episodes", result.failed_episodes},
      {"return_mean", returns.mean},
      {"return_std", returns.deviation},
      {"return_min", returns.min},
      {"return_max", returns.max},
      {"length_mean", lengths.mean},
      {"metrics_mean", MeansOf(result.metrics)},
      {"returns", result.returns},
      {"lengths", result.lengths},
      {"metrics", result.metrics},
      {"warnings", result.warnings},
  };
  if (!result.unclipped_returns.empty()) {
    const Spread unclipped = SpreadOf(result.unclipped_returns);
    json["unclipped_returns"] = result.unclipped_returns;
    json["unclipped_return_mean"] = unclipped.mean;
    json["unclipped_return_std"] = unclipped.deviation;
    json["unclipped_metrics"] = result.unclipped_metrics;
    json["unclipped_metrics_mean"] = MeansOf(result.unclipped_metrics);
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string WhyEpisodesFail() {
  return absl::StrCat(": a reward or an observation was not finite or beyond ", kNumberBound,
                      ", or the environment failed, of which the log says more");
}

std::string FailedEpisodesText(const EvaluationResult& result) {
  if (result.failed_episodes == 0) return "";
  return absl::StrCat(result.failed_episodes, " of ", result.failed_episodes + result.returns.size(),
                      " episodes failed and are left out", WhyEpisodesFail());
}

absl::StatusOr<EvaluationResult> EvaluationFromJson(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    EvaluationResult result;
    json.at("env_id").get_to(result.env_id);
    json.at("policy").get_to(result.policy);
    json.at("checkpoint").get_to(result.checkpoint);
    json.at("digest").get_to(result.digest);
    json.at("env_steps").get_to(result.env_steps);
    json.at("seed").get_to(result.seed);
    json.at("mujoco_version").get_to(result.mujoco_version);
    result.failed_episodes = json.value("failed_episodes", 0u);
    json.at("returns").get_to(result.returns);
    if (json.contains("unclipped_returns")) json.at("unclipped_returns").get_to(result.unclipped_returns);
    if (json.contains("unclipped_metrics")) json.at("unclipped_metrics").get_to(result.unclipped_metrics);
    json.at("lengths").get_to(result.lengths);
    json.at("metrics").get_to(result.metrics);
    json.at("warnings").get_to(result.warnings);
    return result;
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat("evaluation result is not what it should be: ", error.what()));
  }
}

std::string FormatEvaluation(const EvaluationResult& result) {
  const Spread returns = SpreadOf(result.returns);
  const Spread lengths = SpreadOf({result.lengths.begin(), result.lengths.end()});
  std::string metrics;
  for (const auto& [name, values] : result.metrics) {
    absl::StrAppendFormat(&metrics, "%s %.3f, ", name, SpreadOf(values).mean);
  }
  std::string unclipped;
  if (!result.unclipped_returns.empty()) {
    const Spread spread = SpreadOf(result.unclipped_returns);
    unclipped = absl::StrFormat("unclipped %.1f +- %.1f, ", spread.mean, spread.deviation);
    for (const auto& [name, values] : result.unclipped_metrics) {
      absl::StrAppendFormat(&unclipped, "unclipped %s %.3f, ", name, SpreadOf(values).mean);
    }
  }
  return absl::StrFormat("return %.1f +- %.1f (min %.1f, max %.1f), %slength %.0f, %s%d episodes, %s, MuJoCo %s",
                         returns.mean, returns.deviation, returns.min, returns.max, unclipped, lengths.mean, metrics,
                         result.returns.size(), result.env_id, result.mujoco_version);
}

}  // namespace skein
