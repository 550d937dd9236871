// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/monotonic_time.h"
#include "skein/v1/status.pb.h"

namespace skein {

// How a run went, for charts: a point a second, thinned out as it grows so that at most kMostPoints cover the whole of
// it.   StatusResponse -> Add -> points -> HistoryJson
// Pure: no clock, no I/O. Not thread-safe.
class History {
 public:
  static constexpr absl::Duration kPeriod = absl::Seconds(1);
  static constexpr size_t kMostPoints = 1000;

  using StageSeconds = std::map<std::string, double>;
  struct Point {
    double seconds = 0;  // Since the coordinator started.
    uint64_t env_steps = 0;
    double rate_10s = 0, rate_60s = 0;  // Env steps trained on per second.
    double episode_return = 0;          // NaN: no episode has ended yet.
    double policy_lag = 0;
    int actors = 0;
    double efficiency = 0;  // Env steps/s of the actors over what they have measured as their limit; NaN: none has.
    // Wall seconds by stage since the coordinator started, summed over members that came and went: they never fall.
    StageSeconds actor_stages, learner_stages;
  };

  // To be called each kPeriod.
  void Add(const v1::StatusResponse& status, MonotonicTime now);

  // Every stride()-th of the points added, from the first on.
  const std::vector<Point>& points() const { return points_; }
  uint64_t stride() const { return stride_; }
  // The last one added, also if it was not kept. REQUIRES: there was one.
  const Point& newest() const { return newest_; }

 private:
  // Adds what each member has spent since its last report.
  void AddStages(const v1::StatusResponse& status);

  uint64_t added_ = 0;
  uint64_t stride_ = 1;
  std::vector<Point> points_;
  Point newest_;
  std::map<std::pair<std::string, uint64_t>, StageSeconds> reported_;  // By live member and generation.
};

// {"stride": 2, "points": 600, "seconds": [...], "return": [...], ..., "actor_stages": {"wait": [...], ...}}: columns
// of equal length, of the last `count` points kept, and of the newest one if that is not among them. "points": how many
// are kept in all. Numbers that are not finite are null.
std::string HistoryJson(const History& history, size_t count);

}  // namespace skein
