// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_analysis.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/telemetry/format_count.h"

namespace skein {
namespace {

using Json = nlohmann::ordered_json;

ScalingRow AnalyzeRow(const ScalingMeasurement& measured, double baseline_rate, double baseline_step_seconds,
                      const ScalingResults& results) {
  ScalingRow row;
  row.point = measured.point;
  const double total = measured.times.total_seconds();
  const auto count = static_cast<double>(measured.times.seconds.size());
  row.seconds_mean = total / count;
  double squares = 0;
  for (const double seconds : measured.times.seconds) squares += std::pow(seconds - row.seconds_mean, 2);
  if (count > 1) row.seconds_deviation = std::sqrt(squares / (count - 1));
  row.env_steps_per_second = static_cast<double>(measured.times.env_steps) / total;
  row.speed_up = row.env_steps_per_second / baseline_rate;
  row.efficiency = row.speed_up / row.point.environments();
  const auto limit = results.limits.find(row.point.name());
  if (limit != results.limits.end() && limit->second.env_steps_per_second) {
    row.limit = limit->second.env_steps_per_second;
    row.limit_ratio = row.env_steps_per_second / *row.limit;
  }
  row.cpu = SummarizeCpu(measured.usage);
  row.cores = AverageCores(measured.usage);
  row.gpu = SummarizeGpu(measured.usage);
  row.shares = ComputeShares(measured.times, measured.point.runners, baseline_step_seconds);
  return row;
}

// The row of `rows` that is best by `better` among those that `fits`; nullopt if none fits.
template <typename Fits, typename Value>
std::optional<size_t> Best(const std::vector<ScalingRow>& rows, const Fits& fits, const Value& value) {
  std::optional<size_t> best;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (fits(rows[i]) && (!best || value(rows[i]) > value(rows[*best]))) best = i;
  }
  return best;
}

bool IsParallel(const ScalingRow& row) { return row.point.environments() > 1; }

std::string Figures(const ScalingRow& row) {
  return absl::StrFormat("%s env-steps/s at %.1f %% efficiency and %.1f %% CPU",
                         FormatCount(static_cast<uint64_t>(std::llround(row.env_steps_per_second))),
                         100 * row.efficiency, 100 * row.cpu.average);
}

// How the configuration that comes nearest to the rule misses it.
std::string WhyNoneIsBalanced(const std::vector<ScalingRow>& rows) {
  const auto nearest = Best(rows, IsParallel, [](const ScalingRow& row) {
    return -std::max(0.0, kBalancedEfficiency - row.efficiency) - std::max(0.0, row.cpu.average - kBalancedCpu);
  });
  if (!nearest) return "only a single environment was measured";
  const ScalingRow& row = rows[*nearest];
  return absl::StrFormat(
      "no configuration has more than %.0f %% efficiency and less than %.0f %% CPU; nearest is %s with %s",
      100 * kBalancedEfficiency, 100 * kBalancedCpu, row.point.name(), Figures(row));
}

Json RecommendationJson(const std::vector<ScalingRow>& rows, const Recommendation& recommendation) {
  Json json;
  json["configuration"] = recommendation.row ? Json(rows[*recommendation.row].point.name()) : Json();
  json["why"] = recommendation.why;
  return json;
}

Json UsageJson(const UsageSummary& usage) {
  return {{"average", usage.average}, {"max", usage.max}, {"min", usage.min}};
}

Json SharesJson(const StageShares& shares) {
  return {{"runners",
           {{"physics", shares.physics},
            {"contention", shares.contention},
            {"inference", shares.inference},
            {"build", shares.build},
            {"waiting", shares.waiting}}},
          {"learner",
           {{"update", shares.update},
            {"publish", shares.publish},
            {"collecting", shares.collecting},
            {"other", shares.other}}},
          {"transport", shares.transport},
          {"coordination", shares.coordination()}};
}

}  // namespace

void Recommend(ScalingAnalysis* analysis) {
  const std::vector<ScalingRow>& rows = analysis->rows;
  const auto rate = [](const ScalingRow& row) { return row.env_steps_per_second; };
  const auto balanced = [](const ScalingRow& row) {
    return IsParallel(row) && row.efficiency > kBalancedEfficiency && row.cpu.average < kBalancedCpu;
  };
  const auto any = [](const ScalingRow&) { return true; };
  analysis->fastest.row = Best(rows, any, rate);
  analysis->fastest.why =
      analysis->fastest.row ? absl::StrCat("most env-steps/s: ", Figures(rows[*analysis->fastest.row])) : "no rows";
  analysis->balanced.row = Best(rows, balanced, rate);
  analysis->balanced.why =
      analysis->balanced.row
          ? absl::StrFormat("the fastest with more than %.0f %% efficiency and less than %.0f %% CPU: %s",
                            100 * kBalancedEfficiency, 100 * kBalancedCpu, Figures(rows[*analysis->balanced.row]))
          : WhyNoneIsBalanced(rows);
  analysis->most_efficient.row = Best(rows, IsParallel, [](const ScalingRow& row) { return row.efficiency; });
  analysis->most_efficient.why = analysis->most_efficient.row
                                     ? absl::StrCat("highest efficiency of those with several environments: ",
                                                    Figures(rows[*analysis->most_efficient.row]))
                                     : "only a single environment was measured";
}

ScalingAnalysis Analyze(const ScalingResults& results) {
  ScalingAnalysis analysis;
  for (const ScalingMeasurement& measured : results.rows) {
    const IterationTimes& baseline = results.rows[0].times;
    const double baseline_rate = static_cast<double>(baseline.env_steps) / baseline.total_seconds();
    analysis.rows.push_back(AnalyzeRow(measured, baseline_rate, StepSeconds(baseline), results));
  }
  Recommend(&analysis);
  return analysis;
}

Json ToJson(const ScalingResults& results, const ScalingAnalysis& analysis) {
  const auto optional = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  Json rows = Json::array();
  for (size_t i = 0; i < results.rows.size(); ++i) {
    const ScalingRow& row = analysis.rows[i];
    Json json = {{"configuration", row.point.name()},
                 {"environments", row.point.environments()},
                 {"seconds_per_iteration", row.seconds_mean},
                 {"seconds_deviation", row.seconds_deviation},
                 {"env_steps_per_second", row.env_steps_per_second},
                 {"speed_up", row.speed_up},
                 {"efficiency", row.efficiency},
                 {"limit_env_steps_per_second", optional(row.limit)},
                 {"limit_ratio", optional(row.limit_ratio)},
                 {"cpu", UsageJson(row.cpu)},
                 {"cpu_cores", row.cores},
                 {"gpu", row.gpu ? UsageJson(*row.gpu) : Json()},
                 {"stage_shares", SharesJson(row.shares)},
                 {"raw", ToJson(results.rows[i])}};
    rows.push_back(std::move(json));
  }
  Json limits = Json::object();
  for (const auto& [name, limit] : results.limits) {
    limits[name] = {{"env_steps_per_second", optional(limit.env_steps_per_second)}, {"how", limit.how}};
  }
  Json summary = {{"fastest", RecommendationJson(analysis.rows, analysis.fastest)},
                  {"balanced", RecommendationJson(analysis.rows, analysis.balanced)},
                  {"most_efficient", RecommendationJson(analysis.rows, analysis.most_efficient)}};
  summary["gpu_reason"] = results.gpu_reason.empty() ? Json() : Json(results.gpu_reason);
  return {{"machine", results.machine},
          {"config", results.config},
          {"summary", std::move(summary)},
          {"rows", std::move(rows)},
          {"limits", std::move(limits)}};
}

}  // namespace skein
