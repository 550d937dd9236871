// SPDX-License-Identifier: Apache-2.0
#include "env/transform/columns.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace skein {
namespace {

constexpr char kVelocities[] = "velocities";

absl::Status Bad(const std::string& element, const std::string& why) {
  constexpr size_t kShown = 40;
  return absl::InvalidArgumentError(absl::StrCat("'", element.substr(0, kShown), "' ", why));
}

// The columns that `element` names, in ascending order.
absl::StatusOr<std::vector<int>> Named(const EnvSpec& spec, const std::string& element) {
  if (element == kVelocities) {
    if (!spec.velocity_columns.empty()) return spec.velocity_columns;
    return Bad(element, absl::StrCat("are not known of ", spec.id, "; name columns, such as [1, 3-5]"));
  }
  const std::vector<std::string> ends = absl::StrSplit(element, '-');
  int first = 0, last = 0;
  if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) ||
      first > last) {
    return Bad(element, absl::StrCat("is neither a column such as 3, nor a range such as 8-16, nor ", kVelocities));
  }
  if (first < 0 || last >= spec.obs_size) {
    return Bad(element,
               absl::StrCat("is not there: observations of ", spec.id, " have the columns 0-", spec.obs_size - 1));
  }
  std::vector<int> columns;
  for (int column = first; column <= last; ++column) columns.push_back(column);
  return columns;
}

}  // namespace

absl::StatusOr<std::vector<int>> KeptColumns(const EnvSpec& spec, const std::vector<std::string>& hidden) {
  std::vector<char> hides(spec.obs_size);
  for (const std::string& element : hidden) {
    const auto columns = Named(spec, element);
    if (!columns.ok()) return columns.status();
    for (const int column : *columns) {
      if (std::exchange(hides[column], 1) != 0) return Bad(element, absl::StrCat("names column ", column, " again"));
    }
  }
  std::vector<int> kept;
  for (int column = 0; column < spec.obs_size; ++column) {
    if (hides[column] == 0) kept.push_back(column);
  }
  if (kept.empty()) return absl::InvalidArgumentError("nothing is left to observe");
  return kept;
}

}  // namespace skein
