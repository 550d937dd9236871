// SPDX-License-Identifier: Apache-2.0
#include "bench/verb.h"

#include <iostream>

#include "base/process/terminal.h"
#include "bench/bare_update.h"
#include "bench/machine.h"
#include "learner/network/torch_version.h"

namespace skein {

absl::Status MeasureAndReport(const VerbRun& run, const BenchOptions& options, const ShutdownSignal& shutdown,
                              ProgressLine* progress) {
  Report report;
  report.machine = DescribeMachine(TorchVersion());
  report.config = run.config;
  auto rows = RunRounds(
      run.contest, options.rounds, absl::Seconds(options.seconds), [&] { return shutdown.signalled(); }, progress);
  if (!rows.ok()) return rows.status();
  report.rows = *std::move(rows);
  report.summary = Summarize(report.rows, run.contest.rate, run.contest.reference_rate());
  if (run.finish) run.finish(&report.summary);
  std::vector<Column> columns = {{run.contest.rate, run.contest.ours_title},
                                 {run.contest.limit_rate(), run.contest.limit_title},
                                 {"ratio", "ratio"}};
  columns.insert(columns.end(), run.columns.begin(), run.columns.end());
  if (options.json_path != "-") std::cout << FormatReport(report, run.heading, columns) << std::flush;
  return options.json_path.empty() ? absl::OkStatus() : WriteReport(report, options.json_path);
}

ProgressLine StderrProgress() { return ProgressLine(stderr, TerminalWidth(stderr)); }

}  // namespace skein
