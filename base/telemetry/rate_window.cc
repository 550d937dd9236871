// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/rate_window.h"

namespace skein {
namespace {

constexpr absl::Duration kLongestWindow = absl::Seconds(300);

}  // namespace

void RateWindow::Add(absl::Duration now, uint64_t total) {
  points_.emplace_back(now, total);
  while (points_.size() > 2 && now - points_[1].first > kLongestWindow) points_.pop_front();
}

double RateWindow::Rate(absl::Duration now, absl::Duration window) const {
  if (points_.size() < 2) return 0;
  // The newest point that is at least `window` old, else the oldest.
  size_t first = 0;
  while (first + 1 < points_.size() && now - points_[first + 1].first >= window) ++first;
  const double seconds = absl::ToDoubleSeconds(now - points_[first].first);
  return seconds > 0 ? static_cast<double>(points_.back().second - points_[first].second) / seconds : 0;
}

}  // namespace skein
