// SPDX-License-Identifier: Apache-2.0
#include "bench/rank_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace skein {
namespace {

constexpr char kRate[] = "samples_per_second";
constexpr char kLimitRate[] = "limit_samples_per_second";
constexpr double kMicro = 1e6;

// The key of a combination.
constexpr const char* kCombination[] = {"learners", "parameters", "hidden", "device"};

const std::vector<Column>& Columns() {
  static const auto* const kColumns = new std::vector<Column>{{"learners", "learners"},
                                                              {"parameters", "parameters"},
                                                              {kRate, "samples/s"},
                                                              {kLimitRate, "alone"},
                                                              {"ratio", "ratio"},
                                                              {"efficiency", "efficiency"},
                                                              {"all_reduce_microseconds_per_step", "all-reduce us"},
                                                              {"hidden_share", "hidden"},
                                                              {"added_microseconds_per_step", "adds us/step"},
                                                              {"added_seconds_per_update", "adds s/update"}};
  return *kColumns;
}

double Figure(const Json& rank, const char* key) { return rank.at(key).get<double>(); }

double Total(const std::vector<Json>& ranks, const char* key) {
  double total = 0;
  for (const Json& rank : ranks) total += Figure(rank, key);
  return total;
}

double Longest(const std::vector<Json>& ranks) {
  double seconds = 0;
  for (const Json& rank : ranks) seconds = std::max(seconds, Figure(rank, "seconds"));
  return seconds;
}

bool Same(const Json& a, const Json& b) {
  return std::all_of(std::begin(kCombination), std::end(kCombination),
                     [&](const char* key) { return a.value(key, Json()) == b.value(key, Json()); });
}

}  // namespace

Json CombineRanks(const std::vector<Json>& summing, const std::vector<Json>& alone) {
  const double seconds = Longest(summing), limit_seconds = Longest(alone);
  const double each = seconds / Figure(summing[0], "updates"), limit_each = limit_seconds / Figure(alone[0], "updates");
  const double steps = Figure(summing[0], "gradient_steps"), steps_each = steps / Figure(summing[0], "updates");
  const double all_steps = Total(summing, "gradient_steps");
  const double all_reduce = Total(summing, "all_reduce_seconds"), exposed = Total(summing, "exposed_seconds");
  const double rate = Total(summing, "samples") / seconds, limit_rate = Total(alone, "samples") / limit_seconds;
  return {{"device", summing[0].value("device", "?")},
          {kRate, rate},
          {kLimitRate, limit_rate},
          {"ratio", rate / limit_rate},
          {"seconds_per_update", each},
          {"limit_seconds_per_update", limit_each},
          {"added_seconds_per_update", each - limit_each},
          {"gradient_steps_per_update", steps_each},
          {"added_microseconds_per_step", kMicro * (each - limit_each) / steps_each},
          {"all_reduce_microseconds_per_step", kMicro * all_reduce / all_steps},
          {"exposed_microseconds_per_step", kMicro * exposed / all_steps},
          {"hidden_share", all_reduce > 0 ? std::max(0.0, 1 - exposed / all_reduce) : 0},
          {"all_reduces_per_step", Figure(summing[0], "all_reduces") / steps},
          {"bytes_sent_per_step", Figure(summing[0], "bytes_sent") / steps}};
}

void AddEfficiency(std::vector<Json>* rows) {
  const auto single = std::find_if(rows->begin(), rows->end(), [](const Json& row) { return row.at("learners") == 1; });
  if (single == rows->end()) return;
  const double of_one = Figure(*single, kLimitRate);
  for (Json& row : *rows) row["efficiency"] = Figure(row, kRate) / Figure(row, "learners") / of_one;
}

Json SummarizeRanks(const std::vector<Json>& rows) {
  std::vector<std::vector<Json>> groups;
  for (const Json& row : rows) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& of) { return Same(of[0], row); });
    if (group == groups.end()) group = groups.insert(groups.end(), std::vector<Json>());
    group->push_back(row);
  }
  Json combinations = Json::array();
  for (std::vector<Json>& group : groups) {
    Json combination = Json::object();
    for (const char* key : kCombination) combination[key] = group[0].value(key, Json());
    for (Json& row : group) {
      for (const char* key : kCombination) row.erase(key);
    }
    combination.update(Summarize(group, kRate, kLimitRate));
    combinations.push_back(std::move(combination));
  }
  return {{"combinations", std::move(combinations)}};
}

std::string FormatRankReport(const Report& report, const std::string& heading) {
  std::string text = absl::StrFormat("%s\n%s\n\n", heading, FormatMachine(report.machine));
  const auto width = [](const Column& column) { return std::max<size_t>(11, column.title.size() + 2); };
  for (const Column& column : Columns()) absl::StrAppendFormat(&text, "%*s", width(column), column.title);
  for (const Json& combination : report.summary.at("combinations")) {
    text += '\n';
    for (const Column& column : Columns()) {
      absl::StrAppendFormat(&text, "%*s", width(column), FormatFigure(combination.value(column.key, Json())));
    }
  }
  return text + "\n";
}

}  // namespace skein
