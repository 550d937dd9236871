// SPDX-License-Identifier: Apache-2.0
#include "sweep/sweep_report.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/config/config_reflection.h"
#include "sweep/interval.h"

namespace skein {
namespace {

using config_reflection::NumberText;

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}, {"\n", " "}}), "\"");
}

std::vector<double> Shown(const Study& study, const Trial& trial) {
  std::vector<double> values;
  for (double value : trial.values) values.push_back(study.Signed(value));
  return values;
}

bool IsComplete(const Study& test, const TestSides& sides) {
  const auto complete = [&](const std::optional<uint32_t>& side) {
    return side && test.trial(*side).state == TrialState::kComplete;
  };
  return complete(sides.base) && complete(sides.best);
}

nlohmann::ordered_json SideJson(const Study& test, const Trial& trial) {
  const std::vector<double> values = Shown(test, trial);
  const Interval interval = MeanInterval(values);
  return {{"values", values},
          {"mean", interval.mean},
          {"low", interval.mean - interval.half},
          {"high", interval.mean + interval.half}};
}

}  // namespace

std::optional<uint32_t> BestTrial(const Study& study, const Scheduler& scheduler) {
  const Trial* best = nullptr;
  const auto merit = [&](const Trial& one) {
    return std::tuple(one.state == TrialState::kComplete, scheduler.JudgedSteps(one), one.results.rbegin()->second);
  };
  for (const Trial& one : study.trials()) {
    if (one.results.empty() || one.state == TrialState::kFailed) continue;
    if (!std::isfinite(one.results.rbegin()->second)) continue;  // No value yet.
    if (best == nullptr || merit(one) > merit(*best)) best = &one;
  }
  return best == nullptr ? std::nullopt : std::optional<uint32_t>(best->number);
}

std::vector<Trial::Origin> Ancestors(const Study& study, uint32_t number) {
  std::vector<Trial::Origin> ancestors;
  for (auto origin = study.trial(number).origin; origin; origin = study.trial(origin->trial).origin) {
    ancestors.push_back(*origin);
  }
  std::reverse(ancestors.begin(), ancestors.end());
  return ancestors;
}

std::string StateName(const Trial& trial) {
  switch (trial.state) {
    case TrialState::kRunning:
      return trial.waits() ? "paused" : "running";
    case TrialState::kComplete:
      return "complete";
    case TrialState::kPruned:
      return "stopped";
    case TrialState::kFailed:
      break;
  }
  return "failed";
}

std::string ToCsv(const Space& space, const Study& study, const Scheduler& scheduler, uint32_t seeds) {
  std::vector<std::string> head = {"trial", "state", "rung", "env_steps", "value"};
  for (uint32_t i = 0; i < seeds; ++i) head.push_back(absl::StrCat("value_s", i));
  head.insert(head.end(), {"core_seconds", "failures", "continues"});
  for (const Parameter& one : space.parameters) head.push_back(one.path);
  head.push_back("why");
  std::string csv = absl::StrCat(absl::StrJoin(head, ","), "\n");
  for (const Trial& trial : study.trials()) {
    std::vector<std::string> row = {absl::StrCat(trial.number), StateName(trial)};
    if (trial.results.empty()) {
      row.insert(row.end(), 3, "");
    } else {
      const auto& [rung, value] = *trial.results.rbegin();
      row.push_back(absl::StrCat(rung));
      row.push_back(absl::StrCat(scheduler.JudgedSteps(trial)));
      row.push_back(std::isfinite(value) ? NumberText(study.Signed(value)) : "");
    }
    for (uint32_t i = 0; i < seeds; ++i) {
      const bool has_value = i < trial.values.size() && !std::isnan(trial.values[i]);
      row.push_back(has_value ? NumberText(study.Signed(trial.values[i])) : "");
    }
    row.push_back(absl::StrFormat("%.1f", trial.core_seconds));
    row.push_back(absl::StrCat(trial.failures));
    row.push_back(trial.origin ? absl::StrCat(trial.origin->trial) : "");
    for (size_t i = 0; i < space.parameters.size(); ++i) {
      row.push_back(trial.point[i] ? ValueText(space.parameters[i], *trial.point[i]) : "");
    }
    row.push_back(trial.why);
    for (std::string& field : row) field = CsvField(field);
    absl::StrAppend(&csv, absl::StrJoin(row, ","), "\n");
  }
  return csv;
}

TestSides SidesOf(const Study& test, const Point& best) {
  TestSides sides;
  const Point base(best.size());
  for (const Trial& one : test.trials()) {
    if (one.point == base) sides.base = one.number;
    if (one.point == best) sides.best = one.number;
  }
  return sides;
}

std::string TestFailure(const Study& test, const TestSides& sides) {
  const auto failure = [&](const char* name, const std::optional<uint32_t>& side) -> std::string {
    if (!side || test.trial(*side).state != TrialState::kFailed) return "";
    return absl::StrCat("the test of the ", name, " configuration has failed: ", test.trial(*side).why);
  };
  const std::string best = failure("best", sides.best);
  return best.empty() ? failure("base", sides.base) : best;
}

nlohmann::ordered_json TestJson(const Study& test, const TestSides& sides) {
  if (const std::string failure = TestFailure(test, sides); !failure.empty()) return {{"error", failure}};
  if (!IsComplete(test, sides)) return nullptr;
  const Trial& base = test.trial(*sides.base);
  const Trial& best = test.trial(*sides.best);
  const Interval difference = DifferenceInterval(Shown(test, best), Shown(test, base));
  return {{"base", SideJson(test, base)},
          {"best", SideJson(test, best)},
          {"difference",
           {{"mean", difference.mean},
            {"low", difference.mean - difference.half},
            {"high", difference.mean + difference.half}}}};
}

std::string TestText(const Study& test, const TestSides& sides, const std::string& metric) {
  if (const std::string failure = TestFailure(test, sides); !failure.empty()) return failure;
  if (!IsComplete(test, sides)) return "";
  const std::vector<double> base = Shown(test, test.trial(*sides.base)), best = Shown(test, test.trial(*sides.best));
  const auto side = [&](const char* name, const std::vector<double>& values) {
    const Interval interval = MeanInterval(values);
    return absl::StrFormat("%s: %s %.6g +- %.4g on %d fresh seeds", name, metric, interval.mean, interval.half,
                           values.size());
  };
  const Interval difference = DifferenceInterval(best, base);
  const bool clear = std::abs(difference.mean) > difference.half;
  return absl::StrCat(side("best configuration", best), "\n", side("base configuration", base), "\n",
                      absl::StrFormat("difference: %.6g +- %.4g (95 %%)%s", difference.mean, difference.half,
                                      clear ? "" : ": none is shown"));
}

}  // namespace skein
