// SPDX-License-Identifier: Apache-2.0
#include "bench/rank_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace skein {
namespace {

constexpr double kMicro = 1e6;

std::string LimitRate(const std::string& rate) { return "limit_" + rate; }

double Figure(const Json& rank, const std::string& key) { return rank.at(key).get<double>(); }

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

bool Same(const RankTable& table, const Json& a, const Json& b) {
  return std::all_of(table.combination.begin(), table.combination.end(),
                     [&](const std::string& key) { return a.value(key, Json()) == b.value(key, Json()); });
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
          {kSampleRate, rate},
          {LimitRate(kSampleRate), limit_rate},
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

Json CombineFitRanks(const std::vector<Json>& summing, const std::vector<Json>& alone) {
  const double seconds = Longest(summing), limit_seconds = Longest(alone);
  const double each = seconds / Figure(summing[0], "updates"), limit_each = limit_seconds / Figure(alone[0], "updates");
  const double rate = Total(summing, "tokens") / seconds, limit_rate = Total(alone, "tokens") / limit_seconds;
  return {{"device", summing[0].value("device", "?")},
          {kTokenRate, rate},
          {LimitRate(kTokenRate), limit_rate},
          {"ratio", rate / limit_rate},
          {"seconds_per_step", each},
          {"limit_seconds_per_step", limit_each},
          {"added_microseconds_per_step", kMicro * (each - limit_each)},
          {"data_wait_share", Total(summing, "data_wait_seconds") / Total(summing, "seconds")}};
}

void AddEfficiency(const std::string& rate, std::vector<Json>* rows) {
  const auto single = std::find_if(rows->begin(), rows->end(), [](const Json& row) { return row.at("learners") == 1; });
  if (single == rows->end()) return;
  const double of_one = Figure(*single, LimitRate(rate));
  for (Json& row : *rows) row["efficiency"] = Figure(row, rate) / Figure(row, "learners") / of_one;
}

const RankTable& LearnerRankTable() {
  static const auto* const kTable = new RankTable{kSampleRate,
                                                  {"learners", "parameters", "hidden", "device"},
                                                  {{"learners", "learners"},
                                                   {"parameters", "parameters"},
                                                   {kSampleRate, "samples/s"},
                                                   {LimitRate(kSampleRate), "alone"},
                                                   {"ratio", "ratio"},
                                                   {"efficiency", "efficiency"},
                                                   {"all_reduce_microseconds_per_step", "all-reduce us"},
                                                   {"hidden_share", "hidden"},
                                                   {"added_microseconds_per_step", "adds us/step"},
                                                   {"added_seconds_per_update", "adds s/update"}}};
  return *kTable;
}

const RankTable& FitRankTable() {
  static const auto* const kTable = new RankTable{kTokenRate,
                                                  {"learners", "device"},
                                                  {{"learners", "learners"},
                                                   {kTokenRate, "tokens/s"},
                                                   {LimitRate(kTokenRate), "alone"},
                                                   {"ratio", "ratio"},
                                                   {"efficiency", "efficiency"},
                                                   {"added_microseconds_per_step", "adds us/step"},
                                                   {"data_wait_share", "waits for data"}}};
  return *kTable;
}

Json SummarizeRanks(const RankTable& table, const std::vector<Json>& rows) {
  std::vector<std::vector<Json>> groups;
  for (const Json& row : rows) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& of) { return Same(table, of[0], row); });
    if (group == groups.end()) group = groups.insert(groups.end(), std::vector<Json>());
    group->push_back(row);
  }
  Json combinations = Json::array();
  for (std::vector<Json>& group : groups) {
    Json combination = Json::object();
    for (const std::string& key : table.combination) combination[key] = group[0].value(key, Json());
    for (Json& row : group) {
      for (const std::string& key : table.combination) row.erase(key);
    }
    combination.update(Summarize(group, table.rate, LimitRate(table.rate)));
    combinations.push_back(std::move(combination));
  }
  return {{"combinations", std::move(combinations)}};
}

std::string FormatRankReport(const RankTable& table, const Report& report, const std::string& heading) {
  std::string text = absl::StrFormat("%s\n%s\n\n", heading, FormatMachine(report.machine));
  const auto width = [](const Column& column) { return std::max<size_t>(11, column.title.size() + 2); };
  for (const Column& column : table.columns) absl::StrAppendFormat(&text, "%*s", width(column), column.title);
  for (const Json& combination : report.summary.at("combinations")) {
    text += '\n';
    for (const Column& column : table.columns) {
      absl::StrAppendFormat(&text, "%*s", width(column), FormatFigure(combination.value(column.key, Json())));
    }
  }
  return text + "\n";
}

}  // namespace skein
