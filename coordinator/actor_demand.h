// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/status.pb.h"

namespace skein {

// What the caller wants of the answer.
struct ActorBounds {
  uint32_t min_actors = 0;
  uint32_t max_actors = std::numeric_limits<uint32_t>::max();
  double wait_ratio = 0.2;  // The share of its time that the learner may wait for data; 0 < wait_ratio < 1.
};
// From keys minActors, maxActors and targetWaitRatio; others are not looked at, absent ones have the defaults above.
// InvalidArgument names the key and its value.
absl::StatusOr<ActorBounds> ParseActorBounds(const std::map<std::string, std::string>& metadata);

// What was measured while the members stayed the same.
struct ActorEvidence {
  uint32_t actors = 0;
  double wait_ratio = 0;  // Share of the learner's time, waiting and working, that it waited for data.
  double busy_ratio = 1;  // Share of the actors' time in which they worked.
};

// How many actors make the learner wait for `wait_ratio` of its time, not rounded.
//
// A cycle of the learner is a wait B and work U (update, publish, checkpoint), so w = B / (B + U) was measured, and
// t = B' / (B' + U) is wanted: B' = U t / (1 - t). An iteration costs A actors that are busy for the share b of a cycle
// the work A b (B + U), however it is divided: half as many take twice as long.
//   Actors work while the learner waits and only then (on_policy): b (B + U) = B, and A' actors take A B / A' = B'.
//     A' = A B / B' = A w (1 - t) / ((1 - w) t)
//   Actors work all the time (overlapped, async): A' actors take A b (B + U) / A' = B' + U = U / (1 - t).
//     A' = A b (B + U) (1 - t) / U = A b (1 - t) / (1 - w)
double ActorsForWaitRatio(const ActorEvidence& evidence, double wait_ratio, bool while_waiting_only);

// How many actors a run can use.   status of each heartbeat -> Observe -> evidence -> Wanted
// Evidence is taken over whole iterations, and is void while members come and go: an answer stands until something else
// has been measured. Pure: no clock, no locks. Not thread-safe.
class ActorDemand {
 public:
  // An answer within so much of the number that was measured with is that number.
  static constexpr double kTolerance = 0.1;
  // Nor is it more than twice, or less than half, of that number: the next measurement will tell.
  static constexpr double kLargestStep = 2;
  // Evidence is as old as this at least.
  static constexpr double kWindowSeconds = 20;

  explicit ActorDemand(const v1::RunConfig& config);

  void Observe(const v1::StatusResponse& status);

  // The run is not over: it needs actors, or will.
  bool active() const { return active_; }

  // Of a run that is over min_actors, otherwise at least one for each rank and no more than can work at once; always
  // within `bounds`. Before there is evidence as many as there are.
  uint32_t Wanted(const ActorBounds& bounds) const;

 private:
  // Seconds since the members started.
  struct Reading {
    double at = 0;
    double wait = 0, work = 0;  // Of the learner.
    double actors_wait = 0, actors_work = 0;
  };
  using Members = std::vector<std::pair<std::string, uint64_t>>;  // Ids and generations.

  void Measure(const Reading& from, const Reading& to);

  const bool on_device_;  // Without actors.
  const bool while_waiting_only_;
  const uint32_t blocks_;  // Runners that can work at once.

  bool active_ = true;
  uint32_t actors_ = 0, runners_ = 0, ranks_ = 0;  // Live now.
  Members members_;
  uint64_t iteration_ = 0;        // The newest seen.
  std::optional<Reading> begin_;  // At the end of an iteration, with these members.
  std::optional<ActorEvidence> evidence_;
};

}  // namespace skein
