// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/telemetry/format_count.h"

namespace skein {
namespace {

std::string Rate(double rate) { return FormatCount(static_cast<uint64_t>(std::llround(rate))); }

std::string Percents(const UsageSummary& usage) {
  return absl::StrFormat("%.0f / %.0f / %.0f", 100 * usage.average, 100 * usage.max, 100 * usage.min);
}

std::string Cores(const std::vector<double>& cores) {
  constexpr size_t kMost = 16;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(cores.size(), kMost); ++i) shown.push_back(absl::StrFormat("%.0f", 100 * cores[i]));
  return absl::StrCat(absl::StrJoin(shown, " "), cores.size() > kMost ? " ..." : "");
}

std::string MachineLine(const nlohmann::ordered_json& machine) {
  const auto gpus = machine.value("gpus", std::vector<std::string>());
  const double gib = static_cast<double>(machine.value("memory_bytes", uint64_t{0})) / (uint64_t{1} << 30);
  return absl::StrFormat("%s, %d cores, %.0f GiB, %s; %s; MuJoCo %s; %s, build type %s.", machine.value("cpu", "?"),
                         machine.value("cores", 0), gib, gpus.empty() ? "no GPU" : absl::StrJoin(gpus, " + "),
                         machine.value("os", "?"), machine.value("mujoco", "?"), machine.value("compiler", "?"),
                         machine.value("build_type", "?"));
}

std::string Setup(const ScalingResults& results) {
  const nlohmann::ordered_json& config = results.config;
  const auto settings = config.value("settings", std::vector<std::string>());
  const std::string steps =
      config.value("steps_per_env", nlohmann::ordered_json()).is_null()
          ? absl::StrCat("about ", FormatCount(config.value("steps_per_iteration", uint64_t{0})),
                         " env steps (a multiple of the environments)")
          : absl::StrCat(FormatCount(config["steps_per_env"].get<uint64_t>()), " env steps of each environment");
  return absl::StrFormat(
      "Each configuration is a real training of %s with seed %d: %d iterations of %s, after %d to warm up%s. Settings "
      "that "
      "differ from the defaults: %s.",
      config.value("env", "?"), config.value("seed", uint64_t{0}), config.value("iterations", 0), steps,
      config.value("warmup", 0),
      config.value("actors", 1) > 1 ? ", which begin two after the last actor process has joined" : "",
      settings.empty() ? "none" : absl::StrCat("`", absl::StrJoin(settings, "`, `"), "`"));
}

std::string MainTable(const ScalingResults& results, const ScalingAnalysis& analysis) {
  std::string text =
      "| runners x envs | environments | s/iteration | speed-up | efficiency % | env-steps/s | of limit % | "
      "CPU % avg / max / min | by core % | GPU % avg / max |\n|---|---|---|---|---|---|---|---|---|---|\n";
  for (const ScalingRow& row : analysis.rows) {
    absl::StrAppendFormat(&text, "| %s | %d | %.3f +- %.3f | %.2f | %.1f | %s | %s | %s | %s | %s |\n",
                          row.point.name(), row.point.environments(), row.seconds_mean, row.seconds_deviation,
                          row.speed_up, 100 * row.efficiency, Rate(row.env_steps_per_second),
                          row.limit_ratio ? absl::StrFormat("%.1f", 100 * *row.limit_ratio) : "-", Percents(row.cpu),
                          Cores(row.cores),
                          row.gpu ? absl::StrFormat("%.0f / %.0f", 100 * row.gpu->average, 100 * row.gpu->max) : "-");
  }
  if (!results.gpu_reason.empty()) absl::StrAppend(&text, "\nNo GPU figures: ", results.gpu_reason, ".\n");
  return text;
}

// In % of the iterations' time.
std::string StageTable(const ScalingAnalysis& analysis) {
  std::string text =
      "| % of time | runners: physics | contention | inference | build | waiting | of that not for the learner | "
      "learner: update | publish | collecting | other | transport "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const ScalingRow& row : analysis.rows) {
    const StageShares& s = row.shares;
    absl::StrAppendFormat(
        &text, "| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.2f |\n",
        row.point.name(), 100 * s.physics, 100 * s.contention, 100 * s.inference, 100 * s.build, 100 * s.waiting,
        100 * s.coordination(), 100 * s.update, 100 * s.publish, 100 * s.collecting, 100 * s.other, 100 * s.transport);
  }
  return text;
}

std::string RecommendationLine(const ScalingAnalysis& analysis, const std::string& purpose,
                               const Recommendation& recommendation) {
  const std::string name = recommendation.row ? analysis.rows[*recommendation.row].point.name() : "none";
  return absl::StrCat("| ", purpose, " | ", name, " | ", recommendation.why, " |\n");
}

// The fastest row as flags.
std::string HowToRun(const ScalingResults& results, const ScalingAnalysis& analysis) {
  const ScalingMeasurement& row = results.rows[*analysis.fastest.row];
  std::string text =
      absl::StrFormat("    skein train --env %s --recipe %s --runners %d", results.config.value("env", "?"),
                      results.config.value("recipe", "study"), row.point.runners);
  for (const std::string& setting : results.config.value("settings", std::vector<std::string>())) {
    absl::StrAppend(&text, " --set ", setting);
  }
  for (const std::string& size : row.sizes) absl::StrAppend(&text, " --set ", size);
  return text + "\n";
}

}  // namespace

std::string FormatScalingReport(const ScalingResults& results, const ScalingAnalysis& analysis) {
  return absl::StrCat("# How training of ", results.config.value("env", "?"), " scales on this machine\n\n",
                      MachineLine(results.machine), "\n\n", Setup(results), "\n\n", MainTable(results, analysis),
                      "\n## Where the time goes\n\n", StageTable(analysis),
                      "\n## Recommendation\n\n| purpose | runners x envs | why |\n|---|---|---|\n",
                      RecommendationLine(analysis, "fastest", analysis.fastest),
                      RecommendationLine(analysis, "balanced", analysis.balanced),
                      RecommendationLine(analysis, "most efficient", analysis.most_efficient),
                      "\nThe fastest, as a command:\n\n", HowToRun(results, analysis));
}

std::string FormatScalingTable(const ScalingAnalysis& analysis) {
  std::string text = absl::StrFormat("%-10s %18s %9s %12s %13s %10s %12s\n", "RUNxENV", "S/ITERATION", "SPEED-UP",
                                     "EFFICIENCY", "ENV-STEPS/S", "OF LIMIT", "CPU AVG/MAX");
  for (const ScalingRow& row : analysis.rows) {
    absl::StrAppendFormat(&text, "%-10s %10.3f +-%6.3f %9.2f %10.1f %% %13s %10s %12s\n", row.point.name(),
                          row.seconds_mean, row.seconds_deviation, row.speed_up, 100 * row.efficiency,
                          Rate(row.env_steps_per_second),
                          row.limit_ratio ? absl::StrFormat("%.1f %%", 100 * *row.limit_ratio) : "-",
                          absl::StrFormat("%.0f/%.0f %%", 100 * row.cpu.average, 100 * row.cpu.max));
  }
  for (const auto& [purpose, recommendation] :
       {std::pair<const char*, const Recommendation*>{"fastest", &analysis.fastest},
        {"balanced", &analysis.balanced},
        {"most efficient", &analysis.most_efficient}}) {
    const std::string name = recommendation->row ? analysis.rows[*recommendation->row].point.name() : "none";
    absl::StrAppend(&text, purpose, ": ", name, " (", recommendation->why, ")\n");
  }
  return text;
}

}  // namespace skein
