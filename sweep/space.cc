// SPDX-License-Identifier: Apache-2.0
#include "sweep/space.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/config_reflection.h"

namespace skein {

bool IsInUse(const Space& space, const Point& point, size_t index) {
  const auto& when = space.parameters[index].when;
  if (!when) return true;
  const std::optional<double> value = point[when->parameter];
  return value && std::count(when->values.begin(), when->values.end(), *value) > 0;
}

std::string ValueText(const Parameter& parameter, double value) {
  if (parameter.kind == Parameter::Kind::kChoice) return parameter.choices[static_cast<size_t>(value)];
  return config_reflection::NumberText(value);
}

std::vector<std::string> Overrides(const Space& space, const Point& point) {
  std::vector<std::string> overrides;
  for (size_t i = 0; i < point.size(); ++i) {
    if (!point[i]) continue;
    overrides.push_back(absl::StrCat(space.parameters[i].path, "=", ValueText(space.parameters[i], *point[i])));
  }
  return overrides;
}

std::string PointText(const Space& space, const Point& point) {
  std::vector<std::string> values;
  for (size_t i = 0; i < point.size(); ++i) {
    if (point[i])
      values.push_back(absl::StrCat(space.parameters[i].path, " ", ValueText(space.parameters[i], *point[i])));
  }
  return values.empty() ? "the base configuration" : absl::StrJoin(values, ", ");
}

}  // namespace skein
