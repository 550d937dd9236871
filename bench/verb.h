// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/process/shutdown.h"
#include "bench/report.h"
#include "bench/rounds.h"

namespace skein {

// The common last part of a verb, once the measured objects are ready: rounds, summary, table, JSON.
struct VerbRun {
  std::string heading;  // Displayed: what is compared.
  Json config;          // As DescribeConfig.
  Contest contest;
  std::vector<Column> columns;                // Of the table, after rate, limit and ratio.
  std::function<void(Json* summary)> finish;  // Edits the summary at the end; may be empty.
};

// Measures all rounds, summarises, prints the table and writes --json. Errors as RunRounds and WriteReport.
absl::Status MeasureAndReport(const VerbRun& run, const BenchOptions& options, const ShutdownSignal& shutdown,
                              ProgressLine* progress);

// A progress line on standard error.
ProgressLine StderrProgress();

}  // namespace skein
