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

// The course of a run, for charts: one point a second, thinned out as the run grows so that at most kMostPoints cover
// all of it.   StatusResponse -> Add -> points -> HistoryJson
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
    double efficiency = 0;  // Actors' env steps/s over the limit they measured; NaN: none measured.
    // Wall seconds by stage since the coordinator started. Members that have left stay in the sum, so it never
    // decreases.
    StageSeconds actor_stages, learner_stages;
  };

  // Call once each kPeriod.
  void Add(const v1::StatusResponse& status, MonotonicTime now);

  // Every stride()-th of the added points, starting with the first.
  const std::vector<Point>& points() const { return points_; }
  uint64_t stride() const { return stride_; }
  // The last point added, even if it was not kept. REQUIRES: Add() was called.
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
// of equal length with the last `count` kept points, followed by the newest point if it is not among them. "points" is
// the total number of kept points. Numbers that are not finite are null.
std::string HistoryJson(const History& history, size_t count);

}  // namespace skein
