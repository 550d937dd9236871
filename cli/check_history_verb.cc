// SPDX-License-Identifier: Apache-2.0
// skein check-history: checks recorded event histories for broken rules.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/process/exit_code.h"
#include "base/telemetry/format_count.h"
#include "cli/history_check.h"
#include "cli/verbs.h"

namespace skein {
namespace {

// Number of breaches to print; the rest is counted.
constexpr size_t kShownBreaches = 20;

std::string Counts(const std::map<std::string, uint64_t>& counts) {
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& count) {
    absl::StrAppend(out, count.first, " ", FormatCount(count.second));
  });
}

std::vector<std::string> ShownBreaches(const HistoryChecker& checker) {
  const auto& all = checker.breaches();
  return {all.begin(), all.begin() + static_cast<ptrdiff_t>(std::min(all.size(), kShownBreaches))};
}

std::string AsJson(const HistoryChecker& checker) {
  const nlohmann::ordered_json found = {{"processes", checker.processes()},
                                        {"seconds", checker.seconds()},
                                        {"events", checker.events()},
                                        {"batches", checker.batches()},
                                        {"accepted_more_than_once", checker.accepted_again()},
                                        {"breaches", checker.breaches().size()},
                                        {"first_breaches", ShownBreaches(checker)}};
  return found.dump(2);
}

std::string AsText(const HistoryChecker& checker) {
  std::string text = absl::StrFormat("%d processes, %.1f s\nevents: %s\n", checker.processes(), checker.seconds(),
                                     Counts(checker.events()));
  if (!checker.batches().empty()) absl::StrAppend(&text, "batches: ", Counts(checker.batches()), "\n");
  const std::vector<std::string> shown = ShownBreaches(checker);
  for (const std::string& breach : shown) absl::StrAppend(&text, "BREACH: ", breach, "\n");
  const size_t more = checker.breaches().size() - shown.size();
  if (more > 0) absl::StrAppend(&text, "and ", FormatCount(more), " more\n");
  if (shown.empty()) absl::StrAppend(&text, "everything that must hold holds\n");
  return text;
}

absl::Status CheckHistory(const std::string& folder, bool json) {
  HistoryChecker checker;
  const absl::Status read = ReadHistory(folder, [&](const HistoryEvent& event) { checker.See(event); });
  if (!read.ok()) return read;
  std::cout << (json ? AsJson(checker) + "\n" : AsText(checker)) << std::flush;
  if (checker.breaches().empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(folder, ": ", checker.breaches().size(), " breaches of what must hold (docs/faults.md)"));
}

}  // namespace

void AddCheckHistory(CLI::App* app, Action* action) {
  CLI::App* verb = app->add_subcommand("check-history", "Judge what processes recorded with SKEIN_HISTORY=DIR");
  verb->group("");
  auto folder = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  verb->add_option("folder", *folder, "What SKEIN_HISTORY named")->required()->type_name("DIR");
  verb->add_flag("--json", *json, "Print a JSON object");
  verb->footer(
      "Example:\n  mkdir history\n  SKEIN_HISTORY=$PWD/history skein train --env CartPole-v1 --steps 100000\n"
      "  skein check-history history");
  verb->callback(
      [=] { *action = [=] { return ReportAndExitCode("skein check-history", CheckHistory(*folder, *json)); }; });
}

}  // namespace skein
