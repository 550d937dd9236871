// SPDX-License-Identifier: Apache-2.0
#include "sweep/sweep_table.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/telemetry/format_seconds.h"
#include "sweep/space.h"
#include "sweep/sweep_report.h"

namespace skein {
namespace {

constexpr size_t kShownTrials = 12;

}  // namespace

std::string SweepTable::TimeLeft(const SweepWork& work, absl::Duration now) {
  if (!began_) began_ = Begin{now, work.steps_done};
  const double rate = (work.steps_done - began_->steps_done) / absl::ToDoubleSeconds(now - began_->at);
  const double left = work.steps_expected - work.steps_done;
  return rate > 0 && left > 0 ? FormatSeconds(left / rate) : "?";
}

std::string SweepTable::TrialLine(const Trial& trial, const Study& study, const Scheduler& scheduler) const {
  const double result = trial.results.rbegin()->second;
  const std::string value = std::isfinite(result) ? absl::StrFormat("%.6g", study.Signed(result)) : "-";
  return absl::StrFormat("%6d  %-8s %10d %12s  %s", trial.number, StateName(trial), scheduler.JudgedSteps(trial), value,
                         PointText(file_.space, trial.point));
}

std::vector<std::string> SweepTable::Lines(const Study& study, const Scheduler& scheduler, const SweepWork& work,
                                           absl::Duration now) {
  size_t ended = 0, running = 0, paused = 0;
  std::vector<const Trial*> shown;
  for (const Trial& one : study.trials()) {
    if (one.waits()) {
      ++paused;
    } else if (one.state == TrialState::kRunning) {
      ++running;
    } else {
      ++ended;
    }
    if (!one.results.empty() && one.state != TrialState::kFailed) shown.push_back(&one);
  }
  std::vector<std::string> lines = {absl::StrCat(study.id() == 0 ? "" : "test: ", ended, " ended, ", running,
                                                 " running, ", paused, " paused; ", work.busy, " of ", work.slots,
                                                 " slots busy; ", absl::StrFormat("%.3f", work.core_seconds / 3600),
                                                 " core-hours; ETA ", TimeLeft(work, now))};
  std::stable_sort(shown.begin(), shown.end(), [&](const Trial* a, const Trial* b) {
    const uint64_t at = scheduler.JudgedSteps(*a), other = scheduler.JudgedSteps(*b);
    return std::tuple(at, a->results.rbegin()->second) > std::tuple(other, b->results.rbegin()->second);
  });
  if (shown.size() > kShownTrials) shown.resize(kShownTrials);
  lines.push_back(absl::StrFormat("%6s  %-8s %10s %12s  %s", "trial", "state", "env steps", file_.config.metric(), ""));
  for (const Trial* one : shown) lines.push_back(TrialLine(*one, study, scheduler));
  return lines;
}

}  // namespace skein
