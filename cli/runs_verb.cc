// SPDX-License-Identifier: Apache-2.0
// skein runs: the runs in a folder, listed, shown, compared, drawn and removed.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/process/exit_code.h"
#include "base/process/message_text.h"
#include "base/process/terminal.h"
#include "base/telemetry/format_count.h"
#include "cli/curve_plot.h"
#include "cli/run_listing.h"
#include "cli/verbs.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using Json = nlohmann::ordered_json;

struct RunsFlags {
  std::string runs_dir = "runs", metric;
  std::vector<std::string> names;
  int height = 20;
  bool json = false, yes = false;
};

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json Describe(const RunListing& run) {
  Json json = {{"name", run.name},
               {"path", run.path},
               {"env_id", run.task()},
               {"algorithm", run.algorithm()},
               {"seed", run.seed()},
               {"running", run.running},
               {"env_steps", run.env_steps},
               {"total_steps", run.total_steps},
               {"seconds", run.seconds},
               {"episode_return", OrNull(run.episode_return)},
               {"best_episode_return", OrNull(run.best_episode_return)},
               {"evaluation", OrNull(run.evaluation)},
               {"checkpoint", run.checkpoint ? Json(run.checkpoint->path) : Json()},
               {"digest", run.checkpoint ? Json(run.checkpoint->digest) : Json()},
               {"bytes", run.bytes},
               {"changed", absl::FormatTime(absl::RFC3339_sec, run.changed, absl::UTCTimeZone())}};
  if (run.fit) {
    json["held_out_loss"] = OrNull(run.held_out_loss);
    json["best_held_out_loss"] = OrNull(run.best_held_out_loss);
  }
  return json;
}

// At most 12 characters.
std::string ValueOr(const std::optional<double>& value) {
  if (!value) return "-";
  return std::abs(*value) < 1e7 ? absl::StrFormat("%.1f", *value) : absl::StrFormat("%.6g", *value);
}

std::string LossOr(const std::optional<double>& value) { return value ? absl::StrFormat("%.4f", *value) : "-"; }

std::string State(const RunListing& run) { return run.running ? "running" : run.finished ? "finished" : "stopped"; }

void Print(const Json& json) { std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl; }

absl::StatusOr<std::vector<RunListing>> ReadRuns(const std::string& runs_dir, const std::vector<std::string>& names) {
  std::vector<RunListing> runs;
  for (const std::string& name : names) {
    auto run = ReadRun(runs_dir, name);
    if (!run.ok()) return run.status();
    runs.push_back(*std::move(run));
  }
  return runs;
}

absl::Status List(const RunsFlags& flags) {
  const auto names = RunNames(flags.runs_dir);
  if (!names.ok()) return names.status();
  std::vector<RunListing> runs;
  for (const std::string& name : *names) {
    auto run = ReadRun(flags.runs_dir, name);
    if (run.ok()) {
      runs.push_back(*std::move(run));
    } else {  // The others are still worth a list.
      std::cerr << "skein runs: warning: " << OneLine(run.status().message()) << std::endl;
    }
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const RunListing& a, const RunListing& b) { return a.changed > b.changed; });
  if (flags.json) {
    Json list = Json::array();
    for (const RunListing& run : runs) list.push_back(Describe(run));
    Print(list);
    return absl::OkStatus();
  }
  if (runs.empty()) {
    std::cout << (names->empty() ? "no runs in " : "no run can be read in ") << Shown(flags.runs_dir) << std::endl;
    return absl::OkStatus();
  }
  int width = 4;
  for (const RunListing& run : runs) width = std::max(width, static_cast<int>(Shown(run.name).size()));
  std::cout << absl::StrFormat("%-*s  %-24s %-9s %-8s %14s %10s %10s  %s\n", width, "NAME", "ENVIRONMENT", "ALGORITHM",
                               "STATE", "ENV STEPS", "RETURN", "EVALUATED", "CHANGED");
  for (const RunListing& run : runs) {
    std::cout << absl::StrFormat("%-*s  %-24s %-9s %-8s %14s %10s %10s  %s\n", width, Shown(run.name),
                                 Shown(run.task()), run.algorithm(), State(run), FormatCount(run.env_steps),
                                 ValueOr(run.episode_return), ValueOr(run.evaluation),
                                 absl::FormatTime("%Y-%m-%d %H:%M", run.changed, absl::LocalTimeZone()));
  }
  std::cout << std::flush;
  return absl::OkStatus();
}

absl::Status Show(const RunsFlags& flags) {
  const auto run = ReadRun(flags.runs_dir, flags.names.front());
  if (!run.ok()) return run.status();
  if (flags.json) {
    Print(Describe(*run));
    return absl::OkStatus();
  }
  std::cout << run->name << ": " << Shown(run->task()) << ", " << run->algorithm() << ", seed " << run->seed() << ", "
            << State(*run) << "\nfolder " << Escaped(run->path) << ", " << FormatCount(run->bytes) << " bytes\n"
            << (run->fit ? "sequences " : "env steps ") << FormatCount(run->env_steps) << " of "
            << (run->total_steps > 0 ? FormatCount(run->total_steps) : "?");
  if (run->fit) {
    std::cout << "\nheld-out loss " << LossOr(run->held_out_loss) << ", best " << LossOr(run->best_held_out_loss);
  } else {
    std::cout << "\nepisode return " << ValueOr(run->episode_return) << ", best " << ValueOr(run->best_episode_return)
              << ", evaluated " << ValueOr(run->evaluation);
  }
  if (run->checkpoint) {
    std::cout << "\ncheckpoint " << Escaped(run->checkpoint->path) << " (digest " << run->checkpoint->digest << ")";
  }
  std::cout << std::endl;
  return absl::OkStatus();
}

absl::Status Compare(const RunsFlags& flags) {
  if (flags.names.size() < 2) return absl::InvalidArgumentError("one run; name two or more");
  const auto runs = ReadRuns(flags.runs_dir, flags.names);
  if (!runs.ok()) return runs.status();
  const auto settings = DifferentSettings(*runs);
  if (flags.json) {
    Json document = {{"runs", Json::array()}, {"settings", Json::object()}};
    for (const RunListing& run : *runs) document["runs"].push_back(Describe(run));
    for (const auto& [path, values] : settings) document["settings"][path] = values;
    Print(document);
    return absl::OkStatus();
  }
  // Of each kind of run the rows that it has.
  const auto fits =
      std::count_if(runs->begin(), runs->end(), [](const RunListing& run) { return run.fit.has_value(); });
  std::vector<std::pair<std::string, std::vector<std::string>>> rows = {
      {"", {}}, {fits == 0 ? "env steps" : "env steps or sequences", {}}};
  const bool policies = fits < static_cast<std::ptrdiff_t>(runs->size());
  for (const char* title : {"episode return", "best return", "evaluated"}) {
    if (policies) rows.push_back({title, {}});
  }
  for (const char* title : {"held-out loss", "best loss"}) {
    if (fits > 0) rows.push_back({title, {}});
  }
  for (const RunListing& run : *runs) {
    std::vector<std::string> cells = {run.name, FormatCount(run.env_steps)};
    if (policies) {
      cells.insert(cells.end(),
                   {ValueOr(run.episode_return), ValueOr(run.best_episode_return), ValueOr(run.evaluation)});
    }
    if (fits > 0) cells.insert(cells.end(), {LossOr(run.held_out_loss), LossOr(run.best_held_out_loss)});
    for (size_t i = 0; i < rows.size(); ++i) rows[i].second.push_back(cells[i]);
  }
  rows.insert(rows.end(), settings.begin(), settings.end());
  std::vector<int> widths(runs->size() + 1);
  for (const auto& [title, cells] : rows) {
    widths[0] = std::max(widths[0], static_cast<int>(title.size()));
    for (size_t i = 0; i < cells.size(); ++i) {
      widths[i + 1] = std::max(widths[i + 1], static_cast<int>(Shown(cells[i]).size()));
    }
  }
  for (const auto& [title, cells] : rows) {
    std::cout << absl::StrFormat("%-*s", widths[0], title);
    for (size_t i = 0; i < cells.size(); ++i) std::cout << absl::StrFormat("  %*s", widths[i + 1], Shown(cells[i]));
    std::cout << "\n";
  }
  if (settings.empty()) std::cout << "their settings are the same\n";
  std::cout << std::flush;
  return absl::OkStatus();
}

absl::Status Plot(const RunsFlags& flags) {
  constexpr size_t kMostCurves = 26;
  if (flags.names.size() > kMostCurves) return absl::InvalidArgumentError("at most 26 runs");
  const auto runs = ReadRuns(flags.runs_dir, flags.names);
  if (!runs.ok()) return runs.status();
  const bool of_sequences = std::all_of(runs->begin(), runs->end(), [](const RunListing& run) { return run.fit; });
  const std::string metric = !flags.metric.empty() ? flags.metric
                             : of_sequences        ? "held_out_loss"
                                                   : "episode_return_mean";
  std::vector<Curve> curves;
  for (const RunListing& run : *runs) {
    auto points = ReadCurve(run, metric);
    if (!points.ok()) return points.status();
    curves.push_back({run.name, *std::move(points)});
  }
  if (flags.json) {
    Json document = {{"metric", metric}, {"curves", Json::array()}};
    for (const Curve& curve : curves) document["curves"].push_back({{"name", curve.name}, {"points", curve.points}});
    Print(document);
    return absl::OkStatus();
  }
  constexpr int kLeastWidth = 40, kUsualWidth = 100;
  const int terminal = TerminalWidth(stdout);
  std::cout << metric << "\n"
            << PlotCurves(curves, of_sequences ? "sequences" : "env steps",
                          terminal > 0 ? std::max(terminal, kLeastWidth) : kUsualWidth, flags.height)
            << std::flush;
  return absl::OkStatus();
}

absl::Status Remove(const RunsFlags& flags) {
  std::vector<RunListing> runs;
  for (const std::string& name : flags.names) {
    auto run = ReadRun(flags.runs_dir, name);
    if (absl::IsDataLoss(run.status())) run = FindRun(flags.runs_dir, name);
    if (!run.ok()) return run.status();
    runs.push_back(*std::move(run));
  }
  for (const RunListing& run : runs) {
    if (run.running) {
      return absl::FailedPreconditionError(absl::StrCat(run.name, " is running; stop it first. Nothing was removed"));
    }
  }
  if (!flags.yes) {
    std::vector<std::string> texts;
    for (const RunListing& run : runs) {
      texts.push_back(absl::StrCat(run.path, " (", FormatCount(run.env_steps),
                                   run.fit ? " sequences, " : " env steps, ", FormatCount(run.bytes), " bytes)"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("--yes removes ", absl::StrJoin(texts, ", "), "; nothing was removed"));
  }
  Json removed = Json::array();
  for (const RunListing& run : runs) {
    if (absl::Status status = RemoveRun(run); !status.ok()) return status;
    removed.push_back(run.name);
    if (!flags.json) std::cout << "removed " << Escaped(run.path) << std::endl;
  }
  if (flags.json) Print({{"removed", removed}});
  return absl::OkStatus();
}

}  // namespace

void AddRuns(CLI::App* app, Action* action) {
  CLI::App* const verb = app->add_subcommand("runs", "List, show, compare, plot and remove runs");
  verb->require_subcommand(1);
  const auto flags = std::make_shared<RunsFlags>();
  const auto add = [&](const char* name, const char* help, size_t least, size_t most,
                       absl::Status (*run)(const RunsFlags&)) {
    CLI::App* const inner = verb->add_subcommand(name, help);
    inner->add_option("--runs-dir", flags->runs_dir, "Where run folders are")->capture_default_str();
    if (most > 0) {
      inner->add_option("names", flags->names, "Names of runs")
          ->required()
          ->type_name("RUN")
          ->expected(static_cast<int>(least), static_cast<int>(most));
    }
    inner->add_flag("--json", flags->json, "Print one JSON document");
    inner->callback(
        [=] { *action = [=] { return ReportAndExitCode(absl::StrCat("skein runs ", name).c_str(), run(*flags)); }; });
    return inner;
  };
  constexpr size_t kMost = 1000;
  add("list", "All runs, the last changed first", 0, 0, List)->footer("Example:\n  skein runs list");
  add("show", "One run", 1, 1, Show)->footer("Example:\n  skein runs show HalfCheetah-v5-s1");
  add("compare", "Results of runs, and the settings in which they differ", 1, kMost, Compare)
      ->footer("Example:\n  skein runs compare HalfCheetah-v5-s1 HalfCheetah-v5-s2");
  CLI::App* const plot = add("plot", "Curves of runs over env steps, in the terminal", 1, kMost, Plot);
  plot->add_option("--metric", flags->metric,
                   "A number of metrics.jsonl, e.g. update.kl; default: episode_return_mean, or held_out_loss");
  plot->add_option("--height", flags->height, "Lines")->check(CLI::Range(4, 200))->capture_default_str();
  plot->footer("Example:\n  skein runs plot HalfCheetah-v5-s1 HalfCheetah-v5-s2 --metric update.kl");
  CLI::App* const remove = add("remove", "Remove runs with all their checkpoints", 1, kMost, Remove);
  remove->add_flag("--yes", flags->yes, "Remove them; without it only say what would go");
  remove->footer("Example:\n  skein runs remove HalfCheetah-v5-s1 --yes");
}

}  // namespace skein
