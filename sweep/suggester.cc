// SPDX-License-Identifier: Apache-2.0
#include "sweep/suggester.h"

#include "sweep/settings.h"

namespace skein {

Admits AdmitsByConstraints(const Space& space, const v1::RunConfig& base) {
  return [&space, &base](const Point& point) { return MeetsConstraints(space, point, base); };
}

absl::StatusOr<std::optional<Point>> GridSuggester::Suggest(const std::vector<Trial>& trials) {
  if (trials.size() >= points_.size()) return std::nullopt;
  return points_[trials.size()];
}

absl::StatusOr<std::optional<Point>> RandomSuggester::Suggest(const std::vector<Trial>& trials) {
  for (; counted_ < trials.size(); ++counted_) seen_.insert(trials[counted_].point);
  return DrawPoint(space_, seed_, static_cast<uint32_t>(trials.size()),
                   [this](const Point& point) { return seen_.count(point) == 0 && admits_(point); });
}

}  // namespace skein
