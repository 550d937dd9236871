// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

// Summarises the rows of rounds.
namespace skein {

// Keeps keys in insertion order.
using Json = nlohmann::ordered_json;

// The middle value; the mean of the middle two of an even number. REQUIRES: !values.empty().
double Median(std::vector<double> values);

// The median of each number over all rows, nested objects included. Only keys that have a finite number in every row
// count; "round" does not.
Json MedianOfRows(const std::vector<Json>& rows);

// {"min": ..., "max": ...} of a number over all rows. REQUIRES: every row has it.
Json SpreadOfRows(const std::vector<Json>& rows, const std::string& key);

// Medians of all rows, with "ratio" as the ratio of the medians of `rate` and `reference`, then "spread": minimum and
// maximum of each number that is not nested. REQUIRES: every row has all three keys.
Json Summarize(const std::vector<Json>& rows, const std::string& rate, const std::string& reference);

}  // namespace skein
