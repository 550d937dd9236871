// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace skein {
namespace {

std::vector<double> ValuesOf(const std::vector<Json>& rows, const std::string& key) {
  std::vector<double> values;
  for (const Json& row : rows) values.push_back(row.at(key).get<double>());
  return values;
}

bool IsFiniteNumber(const Json& value) { return value.is_number() && std::isfinite(value.get<double>()); }

}  // namespace

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Json MedianOfRows(const std::vector<Json>& rows) {
  Json medians = Json::object();
  if (rows.empty()) return medians;
  for (const auto& item : rows[0].items()) {
    const std::string& key = item.key();
    const auto in_all = [&](const auto& is) {
      return std::all_of(rows.begin(), rows.end(), [&](const Json& row) { return row.contains(key) && is(row[key]); });
    };
    if (key == "round") continue;
    if (in_all(IsFiniteNumber)) {
      medians[key] = Median(ValuesOf(rows, key));
    } else if (in_all([](const Json& value) { return value.is_object(); })) {
      std::vector<Json> nested;
      for (const Json& row : rows) nested.push_back(row[key]);
      medians[key] = MedianOfRows(nested);
    }
  }
  return medians;
}

Json SpreadOfRows(const std::vector<Json>& rows, const std::string& key) {
  const std::vector<double> values = ValuesOf(rows, key);
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  return {{"min", *min}, {"max", *max}};
}

Json Summarize(const std::vector<Json>& rows, const std::string& rate, const std::string& reference) {
  Json summary = MedianOfRows(rows);
  summary["ratio"] = summary[rate].get<double>() / summary[reference].get<double>();
  Json spread = Json::object();
  for (const auto& item : summary.items()) {
    if (item.value().is_number()) spread[item.key()] = SpreadOfRows(rows, item.key());
  }
  summary["spread"] = std::move(spread);
  return summary;
}

}  // namespace skein
