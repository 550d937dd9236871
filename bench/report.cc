// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/process/file.h"
#include "base/telemetry/format_count.h"
#include "google/protobuf/util/json_util.h"

namespace skein {
namespace {

constexpr size_t kColumn = 15;  // Room for a billion with commas.

void AppendFigures(const Json& figures, const std::string& prefix, const std::vector<Column>& shown,
                   std::string* text) {
  for (const auto& item : figures.items()) {
    const std::string name = prefix + item.key();
    const bool in_table = std::any_of(shown.begin(), shown.end(), [&](const Column& c) { return c.key == name; });
    if (in_table || name == "spread") continue;
    if (item.value().is_object()) {
      AppendFigures(item.value(), name + ".", shown, text);
    } else {
      absl::StrAppendFormat(text, "  %-48s %14s\n", name, FormatFigure(item.value()));
    }
  }
}

}  // namespace

std::string FormatMachine(const Json& machine) {
  std::vector<std::string> parts;
  for (const char* key : {"cpu", "os", "compiler", "build_type"}) parts.push_back(machine.value(key, "?"));
  std::string line = absl::StrCat(absl::StrJoin(parts, ", "), "; ", machine.value("cores", 0), " cores");
  for (const char* key : {"mujoco", "libtorch", "grpc"})
    absl::StrAppend(&line, ", ", key, " ", machine.value(key, "?"));
  if (machine.contains("load_average")) {
    absl::StrAppend(&line, absl::StrFormat("; load average %.2f", machine["load_average"][0].get<double>()));
  }
  return line;
}

Json DescribeConfig(const std::string& verb, const BenchOptions& options, const google::protobuf::Message& config) {
  google::protobuf::util::JsonPrintOptions print;
  print.preserve_proto_field_names = true;
  std::string run;
  (void)google::protobuf::util::MessageToJsonString(config, &run, print);
  return {{"verb", verb}, {"rounds", options.rounds}, {"seconds", options.seconds}, {"run", Json::parse(run)}};
}

absl::Status WriteReport(const Report& report, const std::string& path) {
  const Json json = {
      {"machine", report.machine}, {"config", report.config}, {"summary", report.summary}, {"rows", report.rows}};
  const std::string text = json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
  if (path != "-") return WriteFileAtomically(path, text);
  std::cout << text << std::flush;
  return absl::OkStatus();
}

std::string FormatFigure(const Json& value) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) return "-";
  const double number = value.get<double>();
  const double size = std::abs(number);
  if (size >= 1000) return absl::StrCat(number < 0 ? "-" : "", FormatCount(std::llround(std::min(size, 1e18))));
  return absl::StrFormat("%.4g", number);
}

std::string FormatReport(const Report& report, const std::string& heading, const std::vector<Column>& columns) {
  std::string text = absl::StrCat(heading, "\n", FormatMachine(report.machine), "\n\n");
  std::vector<size_t> widths;
  absl::StrAppendFormat(&text, "%-7s", "round");
  for (const Column& column : columns) {
    widths.push_back(std::max<size_t>(kColumn, column.title.size() + 2));
    absl::StrAppendFormat(&text, "%*s", widths.back(), column.title);
  }
  const auto append_line = [&](const std::string& name, const auto& figure_of) {
    absl::StrAppendFormat(&text, "\n%-7s", name);
    for (size_t i = 0; i < columns.size(); ++i) {
      absl::StrAppendFormat(&text, "%*s", widths[i], FormatFigure(figure_of(columns[i].key)));
    }
  };
  const auto in = [](const Json& object, const std::string& key) {
    return object.is_object() ? object.value(key, Json()) : Json();
  };
  for (const Json& row : report.rows) {
    append_line(FormatFigure(in(row, "round")), [&](const std::string& key) { return in(row, key); });
  }
  append_line("median", [&](const std::string& key) { return in(report.summary, key); });
  for (const char* bound : {"min", "max"}) {
    append_line(bound, [&](const std::string& key) { return in(in(in(report.summary, "spread"), key), bound); });
  }
  absl::StrAppend(&text, "\n\n");
  AppendFigures(report.summary, "", columns, &text);
  return text;
}

}  // namespace skein
