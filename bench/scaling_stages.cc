// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_stages.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

double Stage(const std::map<std::string, double>& stages, const std::string& name) {
  const auto it = stages.find(name);
  return it == stages.end() ? 0 : it->second;
}

// One line, as the learner wrote it.
struct Line {
  double seconds = 0;
  uint64_t env_steps = 0;
  std::map<std::string, double> learner, runners;
};

absl::StatusOr<Line> Parse(const std::string& text, size_t number) {
  try {
    const auto json = nlohmann::json::parse(text);
    return Line{.seconds = json.at("seconds").get<double>(),
                .env_steps = json.at("env_steps").get<uint64_t>(),
                .learner = json.at("learner_stage_seconds").get<std::map<std::string, double>>(),
                .runners = json.at("actor_stage_seconds").get<std::map<std::string, double>>()};
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat("metrics.jsonl, line ", number, ": ", error.what()));
  }
}

}  // namespace

double IterationTimes::total_seconds() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

absl::StatusOr<IterationTimes> ReadIterationTimes(const std::vector<std::string>& lines) {
  if (lines.size() < 2) {
    return absl::FailedPreconditionError(absl::StrCat("got ", lines.size(), " lines of metrics, want at least 2"));
  }
  auto before = Parse(lines[0], 1);
  if (!before.ok()) return before.status();
  const Line first = *before;
  IterationTimes times;
  for (size_t i = 1; i < lines.size(); ++i) {
    auto line = Parse(lines[i], i + 1);
    if (!line.ok()) return line.status();
    if (line->seconds <= before->seconds || line->env_steps <= before->env_steps) {
      return absl::DataLossError(absl::StrCat("metrics.jsonl, line ", i + 1, ": time or env steps do not rise"));
    }
    times.seconds.push_back(line->seconds - before->seconds);
    for (const auto& [stage, seconds] : line->runners) times.runners[stage] += seconds;
    before = *std::move(line);
  }
  times.env_steps = before->env_steps - first.env_steps;
  for (const auto& [stage, seconds] : before->learner) times.learner[stage] = seconds - Stage(first.learner, stage);
  return times;
}

double StageShares::coordination() const { return std::max(0.0, waiting - serial()); }

double StepSeconds(const IterationTimes& times) {
  return times.env_steps == 0 ? 0 : Stage(times.runners, "env_step") / static_cast<double>(times.env_steps);
}

StageShares ComputeShares(const IterationTimes& times, uint32_t runners, double baseline_step_seconds) {
  StageShares shares;
  const double wall = times.total_seconds();
  const double runner_time = wall * runners;
  const double stepping = Stage(times.runners, "env_step") / runner_time;
  const double step_seconds = StepSeconds(times);
  const double undisturbed =
      baseline_step_seconds > 0 && step_seconds > 0 ? std::min(1.0, baseline_step_seconds / step_seconds) : 1;
  shares.physics = stepping * undisturbed;
  shares.contention = stepping - shares.physics;
  shares.inference = Stage(times.runners, "inference") / runner_time;
  shares.build = Stage(times.runners, "build") / runner_time;
  shares.waiting = std::max(0.0, 1 - stepping - shares.inference - shares.build);
  shares.update = Stage(times.learner, "update") / wall;
  shares.publish = Stage(times.learner, "publish") / wall;
  shares.collecting = Stage(times.learner, "barrier") / wall;
  shares.other = std::max(0.0, 1 - shares.update - shares.publish - shares.collecting);
  shares.transport = (Stage(times.learner, "receive") + Stage(times.learner, "admit")) / wall;
  return shares;
}

}  // namespace skein
