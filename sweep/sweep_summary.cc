// SPDX-License-Identifier: Apache-2.0
#include "sweep/sweep_summary.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/config/config_reflection.h"
#include "sweep/sweep_report.h"

namespace skein {
namespace {

// The command that trains the trial again with its first seed; empty where there is none: it continues copies.
std::string CommandOf(const Trial& trial, const SweepFile& file, const RunLauncher& launcher,
                      const Search::Options& options) {
  if (trial.origin) return "";
  return launcher.Command(trial.point, options.SeedOf(trial, 0), file.config.name() + "-best");
}

}  // namespace

std::string SummaryText(const SweepFile& file, const SweepRecord& record, const Scheduler& scheduler,
                        const RunLauncher& launcher, const Search::Options& options, const std::string& folder,
                        const SweepOutcome& outcome) {
  const Study& study = record.search();
  std::string text = absl::StrCat("trials: ", study.trials().size(), " (", folder, "/sweep.csv)\n");
  if (const auto share = outcome.slots.share()) {
    absl::StrAppend(&text, absl::StrFormat("slots: busy %.1f %% of the time\n", *share * 100));
  }
  if (const auto best = BestTrial(study, scheduler)) {
    const Trial& trial = study.trial(*best);
    absl::StrAppend(&text, "best: trial ", trial.number, ", ", file.config.metric(), " ",
                    config_reflection::NumberText(study.Signed(trial.results.rbegin()->second)), ": ",
                    PointText(file.space, trial.point), "\n");
    const std::string command = CommandOf(trial, file, launcher, options);
    if (command.empty()) {
      absl::StrAppend(&text, "it continues copies of other trials; its checkpoints are in ",
                      launcher.RunFolder({false, trial.number, 0}), "\n");
    } else {
      absl::StrAppend(&text, "again with: ", command, "\n");
    }
    const std::string test = TestText(record.test(), SidesOf(record.test(), trial.point), file.config.metric());
    if (!test.empty()) absl::StrAppend(&text, test, "\n");
  }
  if (outcome.stopped) absl::StrAppend(&text, "stopped before the end; the same command goes on\n");
  return text;
}

nlohmann::ordered_json SummaryJson(const SweepFile& file, const SweepRecord& record, const Scheduler& scheduler,
                                   const RunLauncher& launcher, const Search::Options& options,
                                   const SweepOutcome& outcome) {
  using Json = nlohmann::ordered_json;
  const Study& study = record.search();
  Json counts = {{"complete", 0}, {"stopped", 0}, {"failed", 0}, {"paused", 0}, {"running", 0}};
  for (const Trial& one : study.trials()) counts[StateName(one)] = counts[StateName(one)].get<int>() + 1;
  Json json = {{"trials", counts},
               {"finished", outcome.finished},
               {"slots_busy", nullptr},
               {"best", nullptr},
               {"test", nullptr}};
  if (const auto share = outcome.slots.share()) json["slots_busy"] = *share;
  const auto best = BestTrial(study, scheduler);
  if (!best) return json;
  const Trial& trial = study.trial(*best);
  json["test"] = TestJson(record.test(), SidesOf(record.test(), trial.point));
  Json parameters = Json::object();
  for (size_t i = 0; i < trial.point.size(); ++i) {
    if (trial.point[i])
      parameters[file.space.parameters[i].path] = ValueText(file.space.parameters[i], *trial.point[i]);
  }
  const std::string command = CommandOf(trial, file, launcher, options);
  json["best"] = {{"trial", trial.number},
                  {"value", study.Signed(trial.results.rbegin()->second)},
                  {"parameters", parameters},
                  {"run_directory", launcher.RunFolder({false, trial.number, 0})},
                  {"command", command.empty() ? Json() : Json(command)}};
  return json;
}

}  // namespace skein
