// SPDX-License-Identifier: Apache-2.0
#include "bench/tune.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/telemetry/format_count.h"

namespace skein {
namespace {

constexpr uint32_t kMaxRunners = 1024;
constexpr uint32_t kMaxEnvsPerRunner = 256;

class Climber {
 public:
  Climber(uint64_t steps_per_iteration, const MeasureTrial& measure) : steps_(steps_per_iteration), measure_(measure) {}

  bool Fits(const ScalingPoint& point) const {
    return point.runners >= 1 && point.runners <= kMaxRunners && point.envs_per_runner >= 1 &&
           point.envs_per_runner <= kMaxEnvsPerRunner && steps_ % point.environments() == 0;
  }

  absl::Status Start(const ScalingPoint& point) {
    auto trial = Measure(point);
    if (!trial.ok()) return trial.status();
    search_.best = *trial;
    return absl::OkStatus();
  }

  // Continues in steps of `next` from the best point while each is `worth` times as fast as the fastest before it.
  // Returns whether any was.
  template <typename Next>
  absl::StatusOr<bool> Climb(const Next& next, double worth) {
    bool climbed = false;
    for (ScalingPoint point = next(search_.best.point); Fits(point); point = next(point)) {
      auto trial = Measure(point);
      if (!trial.ok()) return trial.status();
      if (trial->env_steps_per_second < worth * fastest_before_) break;
      search_.best = *trial;
      climbed = true;
    }
    return climbed;
  }

  TuneSearch search() && { return std::move(search_); }

 private:
  absl::StatusOr<TuneTrial> Measure(const ScalingPoint& point) {
    for (const TuneTrial& one : search_.trials) fastest_before_ = std::max(fastest_before_, one.env_steps_per_second);
    auto trial = measure_(point);
    if (trial.ok()) search_.trials.push_back(*trial);
    return trial;
  }

  const uint64_t steps_;
  const MeasureTrial& measure_;
  TuneSearch search_;
  double fastest_before_ = 0;
};

// A number smaller than its divisor becomes 0.
ScalingPoint Fewer(const ScalingPoint& point, uint32_t runners_by, uint32_t envs_by) {
  return {point.runners / runners_by, point.envs_per_runner / envs_by};
}

}  // namespace

TuneTrial MakeTrial(const ScalingMeasurement& measured) {
  return {.point = measured.point,
          .env_steps_per_second = static_cast<double>(measured.times.env_steps) / measured.times.total_seconds(),
          .cpu = SummarizeCpu(measured.usage).average};
}

absl::StatusOr<TuneSearch> SearchFastest(uint32_t cores, uint32_t envs_per_runner, uint64_t steps_per_iteration,
                                         const MeasureTrial& measure) {
  Climber climber(steps_per_iteration, measure);
  ScalingPoint start = {std::clamp(cores, 1u, kMaxRunners), std::clamp(envs_per_runner, 1u, kMaxEnvsPerRunner)};
  while (start.runners > 1 && !climber.Fits(start)) --start.runners;
  while (start.envs_per_runner > 1 && !climber.Fits(start)) --start.envs_per_runner;
  if (!climber.Fits(start)) return absl::InvalidArgumentError("rollout.steps_per_iteration: got 0, want at least 1");
  if (absl::Status s = climber.Start(start); !s.ok()) return s;

  const auto more_envs = [](ScalingPoint point) { return ScalingPoint{point.runners, point.envs_per_runner * 4}; };
  const auto fewer_envs = [](ScalingPoint point) { return Fewer(point, 1, 4); };
  const auto more_runners = [](ScalingPoint point) { return ScalingPoint{point.runners * 2, point.envs_per_runner}; };
  const auto fewer_runners = [](ScalingPoint point) { return Fewer(point, 2, 1); };
  const double fewer_worth = 1 / kWorthIt;  // Fewer is better at the same speed.
  auto climbed = climber.Climb(more_envs, kWorthIt);
  if (climbed.ok() && !*climbed) climbed = climber.Climb(fewer_envs, fewer_worth);
  if (climbed.ok()) climbed = climber.Climb(more_runners, kWorthIt);
  if (climbed.ok() && !*climbed) climbed = climber.Climb(fewer_runners, fewer_worth);
  if (!climbed.ok()) return climbed.status();
  return std::move(climber).search();
}

std::string FormatTuneTable(const TuneSearch& search) {
  std::string text = absl::StrFormat("%8s %16s %13s %7s\n", "RUNNERS", "ENVS_PER_RUNNER", "ENV-STEPS/S", "CPU");
  for (const TuneTrial& trial : search.trials) {
    absl::StrAppendFormat(&text, "%8d %16d %13s %5.0f %%%s\n", trial.point.runners, trial.point.envs_per_runner,
                          FormatCount(static_cast<uint64_t>(std::llround(trial.env_steps_per_second))), 100 * trial.cpu,
                          trial.point == search.best.point ? "  <- chosen" : "");
  }
  return text;
}

}  // namespace skein
