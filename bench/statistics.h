// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

// From rounds to figures that can be quoted.
namespace skein {

// Keeps its keys in the order in which they were set.
using Json = nlohmann::ordered_json;

// The middle value; the mean of the middle two of an even number. REQUIRES: !values.empty().
double Median(std::vector<double> values);

// The median of each number over all rows, nested objects included. A key counts if every row has it and all its values
// are finite numbers; "round" does not.
Json MedianOfRows(const std::vector<Json>& rows);

// {"min": ..., "max": ...} of a number over all rows. REQUIRES: every row has it.
Json SpreadOfRows(const std::vector<Json>& rows, const std::string& key);

// Medians of all rows, "ratio" being that of the medians of `rate` and `reference`, then "spread": the smallest and
// largest of each number that is not nested. REQUIRES: every row has all three.
Json Summarize(const std::vector<Json>& rows, const std::string& rate, const std::string& reference);

}  // namespace skein
