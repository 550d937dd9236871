// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/options.h"
#include "bench/statistics.h"
#include "google/protobuf/message.h"

namespace skein {

// The result of a verb. As JSON it has exactly these four keys.
struct Report {
  Json machine, config, summary;
  std::vector<Json> rows;
};

// "config" of a report: the verb, rounds and seconds, then the whole configuration, a RunConfig or FitConfig, under
// "run".
Json DescribeConfig(const std::string& verb, const BenchOptions& options, const google::protobuf::Message& config);

// Errors as WriteFileAtomically.
// "-": to standard output.
absl::Status WriteReport(const Report& report, const std::string& path);

// A column of the table over rounds: a key of the rows and its title.
struct Column {
  std::string key, title;
};

// The machine of a report in one line.
std::string FormatMachine(const Json& machine);

// Machine, one line per round, medians with their spread, then every other number of the summary, nested ones as a.b.
std::string FormatReport(const Report& report, const std::string& heading, const std::vector<Column>& columns);

// 12345.6 -> "12,346", 3.14159 -> "3.142", 0.000123 -> "0.000123"; not a number -> "-".
std::string FormatFigure(const Json& value);

}  // namespace skein
