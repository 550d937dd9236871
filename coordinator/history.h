// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/monotonic_time.h"
#include "coordinator/state_store.h"
#include "skein/v1/status.pb.h"
#include "store/record.pb.h"

namespace skein {

// The course of a run, for charts: one point a second, thinned out as the run grows so that at most kMostPoints cover
// all of it.   StatusResponse -> Add -> points -> HistoryJson
//                                           |-> TakeChanges -> StateStore -> Restore, in the next coordinator
// Pure: no clock, no I/O. Not thread-safe.
class History {
 public:
  static constexpr absl::Duration kPeriod = absl::Seconds(1);
  static constexpr size_t kMostPoints = 1000;
  static constexpr size_t kPointsPerRecord = 50;

  using Numbers = std::map<std::string, double>;  // By name.
  struct Point {
    double seconds = 0;  // Since the first coordinator of the run started, without the pauses between sessions.
    double env_steps = 0;
    double rate_10s = 0, rate_60s = 0;  // Env steps trained on per second.
    double episode_return = 0;          // Mean of the last 100 episodes; NaN: none has ended yet.
    double episode_length = 0;          // Env steps; NaN as above.
    double policy_lag = 0;
    double actors = 0;
    double efficiency = 0;  // Actors' env steps/s over the limit they measured; NaN: none measured.
    // Wall seconds by stage since the run started. Members that have left stay in the sum, so it never decreases.
    Numbers actor_stages, learner_stages;
    Numbers update_stats;      // Of the last update, under the algorithm's names.
    Numbers episode_metrics;   // Means over the same episodes as episode_return.
    Numbers callback_metrics;  // What the run's callback logged last.
  };

  // Call once each kPeriod. `now`: since this coordinator started.
  void Add(const v1::StatusResponse& status, MonotonicTime now);

  // Every stride()-th of the added points, starting with the first.
  const std::vector<Point>& points() const { return points_; }
  uint64_t stride() const { return stride_; }
  // The last point added, even if it was not kept. REQUIRES: Add() was called.
  const Point& newest() const { return newest_; }

  // Records of kPointsPerRecord consecutive points each: those that differ from what the last call returned.
  // `unix_seconds`: the time of day at `now` = 0.
  std::vector<StateChange> TakeChanges(double unix_seconds);
  // Continues from the records of an earlier coordinator, in the order of their keys. A record that does not continue
  // the one before it, or has no usable stride, is left out. `new_session`: the time since then does not count.
  // REQUIRES: nothing was added.
  void Restore(const std::vector<store::HistoryRecord>& records, double unix_seconds, bool new_session);

 private:
  // Adds what each member has spent since its last report.
  void AddStages(const v1::StatusResponse& status);

  uint64_t added_ = 0;
  uint64_t stride_ = 1;
  std::vector<Point> points_;
  Point newest_;
  std::map<std::pair<std::string, uint64_t>, Numbers> reported_;  // By live member and generation.
  double start_seconds_ = 0;                                      // Point::seconds at `now` = 0.

  size_t kept_points_ = 0;  // In records, with
  uint64_t kept_stride_ = 1;
  size_t kept_records_ = 0;
};

// {"stride": 2, "points": 600, "seconds": [...], "return": [...], ..., "actor_stages": {"wait": [...], ...}}: columns
// of equal length with the last `count` kept points, followed by the newest point if it is not among them. "points" is
// the total number of kept points. Numbers are rounded to six digits; those that are not finite are null.
std::string HistoryJson(const History& history, size_t count);

}  // namespace skein
