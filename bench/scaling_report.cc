// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/telemetry/format_count.h"
#include "bench/scaling_findings.h"

namespace skein {
namespace {

// What the study found on its own machine, with another program.
struct StudyRow {
  ScalingPoint point;
  double seconds, speed_up, efficiency;
  uint64_t rate;
  double cpu_average, cpu_max;
};
constexpr StudyRow kStudy[] = {
    {{1, 1}, 11.69, 1.00, 100.0, 1403, 7.9, 9.9}, {{2, 1}, 7.30, 1.60, 80.1, 2246, 13.3, 17.3},
    {{4, 1}, 4.30, 2.72, 67.9, 3816, 21.3, 28.0}, {{8, 1}, 2.54, 4.61, 57.6, 6464, 34.2, 58.4},
    {{1, 2}, 6.85, 1.71, 85.3, 2394, 13.9, 18.6}, {{1, 4}, 4.01, 2.92, 72.9, 4092, 20.8, 29.0},
    {{1, 8}, 2.65, 4.41, 55.1, 6193, 33.1, 57.6}, {{2, 2}, 4.11, 2.85, 71.2, 3992, 20.7, 29.2},
    {{4, 2}, 2.49, 4.70, 58.7, 6590, 33.1, 57.2}, {{8, 2}, 2.23, 5.24, 32.7, 7354, 32.9, 57.5},
};

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
  absl::StrAppend(
      &text,
      "\nSpeed-up is against 1x1, efficiency is speed-up over environments; the limit is that of the bare "
      "environment on as many threads as there are runners, or cores if those are fewer. A runner steps its "
      "environments one after the other: only runners work in parallel, and no more of them than there are "
      "cores, unless the environment itself waits. Utilisation is of "
      "the whole machine, sampled every 0.5 s during the iterations that count.");
  if (!results.gpu_reason.empty()) absl::StrAppend(&text, " No GPU figures: ", results.gpu_reason, ".");
  return text + "\n";
}

std::string StageTable(const ScalingAnalysis& analysis) {
  std::string text =
      "| | runners: physics | contention | inference | build | waiting | learner: update | publish | collecting | "
      "other | transport |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const ScalingRow& row : analysis.rows) {
    const StageShares& s = row.shares;
    absl::StrAppendFormat(&text, "| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.2f |\n",
                          row.point.name(), 100 * s.physics, 100 * s.contention, 100 * s.inference, 100 * s.build,
                          100 * s.waiting, 100 * s.update, 100 * s.publish, 100 * s.collecting, 100 * s.other,
                          100 * s.transport);
  }
  return text +
         "\nIn % of the iterations' time, from the clocks of runners and learner. The runners' five sum to 100, and so "
         "do "
         "the learner's four; both go on at the same time. Contention is what stepping an environment takes longer "
         "than at 1x1. Transport is what the learner's other threads spend on receiving, checking and placing "
         "fragments.\n";
}

std::string Beside(const ScalingAnalysis& analysis) {
  std::string text =
      "| runners x envs | study: s/iter | speed-up | efficiency % | steps/s | CPU % avg/max | here: s/iter | speed-up "
      "| efficiency % | steps/s | CPU % avg/max |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  bool any = false;
  for (const StudyRow& study : kStudy) {
    const auto row = std::find_if(analysis.rows.begin(), analysis.rows.end(),
                                  [&](const ScalingRow& one) { return one.point == study.point; });
    if (row == analysis.rows.end()) continue;
    any |= study.point.environments() > 1;
    absl::StrAppendFormat(&text, "| %s | %.2f | %.2f | %.1f | %s | %.1f/%.1f | %.3f | %.2f | %.1f | %s | %.1f/%.1f |\n",
                          study.point.name(), study.seconds, study.speed_up, study.efficiency, FormatCount(study.rate),
                          study.cpu_average, study.cpu_max, row->seconds_mean, row->speed_up, 100 * row->efficiency,
                          Rate(row->env_steps_per_second), 100 * row->cpu.average, 100 * row->cpu.max);
  }
  return any ? text : "";
}

std::string RecommendationLine(const ScalingAnalysis& analysis, const std::string& purpose,
                               const Recommendation& recommendation) {
  const std::string name = recommendation.row ? analysis.rows[*recommendation.row].point.name() : "none";
  return absl::StrCat("| ", purpose, " | ", name, " | ", recommendation.why, " |\n");
}

// The fastest row as flags.
std::string HowToRun(const ScalingResults& results, const ScalingAnalysis& analysis) {
  const ScalingMeasurement& row = results.rows[*analysis.fastest.row];
  std::string text = absl::StrFormat("    skein train --env %s --runners %d --envs-per-runner %d --envs %d",
                                     results.config.value("env", "?"), row.point.runners, row.point.envs_per_runner,
                                     row.point.environments());
  absl::StrAppend(&text, " --set rollout.steps_per_iteration=", row.steps_per_iteration);
  for (const std::string& setting : results.config.value("settings", std::vector<std::string>())) {
    absl::StrAppend(&text, " --set ", setting);
  }
  return text + "\n";
}

}  // namespace

std::string FormatScalingReport(const ScalingResults& results, const ScalingAnalysis& analysis) {
  const std::string env = results.config.value("env", "?");
  std::string text = absl::StrCat("# How training of ", env, " scales on this machine\n\n");
  absl::StrAppend(&text,
                  "Question: how much faster does training get with more runners (threads that collect) and more "
                  "environments of each, what eats the rest, and which configuration should one take?\n\n## Setup\n\n",
                  MachineLine(results.machine), "\n\n", Setup(results),
                  "\n\n## Result\n\n![dashboard](dashboard.png)\n\n", MainTable(results, analysis), "\n## Findings\n\n",
                  absl::StrJoin(ScalingFindings(results, analysis), "\n\n"), "\n\n## Where the time goes\n\n",
                  StageTable(analysis), "\n## Recommendation\n\n| purpose | runners x envs | why |\n|---|---|---|\n",
                  RecommendationLine(analysis, "fastest", analysis.fastest),
                  RecommendationLine(analysis, "balanced", analysis.balanced),
                  RecommendationLine(analysis, "most efficient", analysis.most_efficient),
                  "\nThe fastest, as a command:\n\n", HowToRun(results, analysis));
  if (const std::string beside = Beside(analysis); !beside.empty() && env == "HalfCheetah-v5") {
    absl::StrAppend(
        &text,
        "\n## Beside the study that this repeats\n\nIts figures are from **another machine** (16 logical "
        "cores and a GPU) and another program (RLlib's PPO, HalfCheetah-v5, networks [64, 64], 5 epochs, about "
        "16.4k steps an iteration): compare how they scale, not how fast they are.\n\n",
        beside);
  }
  absl::StrAppend(&text,
                  "\n## Files\n\n`results.json` has every figure above, each iteration and each sample of utilisation; "
                  "`dashboard.gp` draws the picture again from `dashboard.dat`.\n");
  return text;
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
