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

// Estimates the number of actors that a run can use.
namespace skein {

// Limits and target that the caller sets for the answer.
struct ActorBounds {
  uint32_t min_actors = 0;
  uint32_t max_actors = std::numeric_limits<uint32_t>::max();
  double wait_ratio = 0.2;  // Target share of time that the learner waits for data; 0 < wait_ratio < 1.
};
// Parses the keys minActors, maxActors and targetWaitRatio. Other keys are ignored; absent ones keep the defaults
// above. InvalidArgument: a bad value; names the key and the value.
absl::StatusOr<ActorBounds> ParseActorBounds(const std::map<std::string, std::string>& metadata);

// Measurements over a period in which the members did not change.
struct ActorEvidence {
  uint32_t actors = 0;
  double wait_ratio = 0;  // Share of the learner's time, waiting and working, that it waited for data.
  double busy_ratio = 1;  // Share of the actors' time in which they worked.
};

// The number of actors, not rounded, with which the learner waits for `wait_ratio` of its time.
//
// One cycle of the learner is waiting time B plus work time U (update, publish, checkpoint). The measured ratio is
// w = B / (B + U) and the target is t = B' / (B' + U), so B' = U t / (1 - t). In one iteration A actors, each busy for
// the share b of the cycle, do the work A b (B + U). This work does not depend on A: half as many actors take twice as
// long.
//   Actors work only while the learner waits (on_policy): b (B + U) = B, and A' actors take A B / A' = B'.
//     A' = A B / B' = A w (1 - t) / ((1 - w) t)
//   Actors work all the time (overlapped, async): A' actors take A b (B + U) / A' = B' + U = U / (1 - t).
//     A' = A b (B + U) (1 - t) / U = A b (1 - t) / (1 - w)
double ActorsForWaitRatio(const ActorEvidence& evidence, double wait_ratio, bool while_waiting_only);

// Estimates how many actors a run can use.   status of each heartbeat -> Observe -> evidence -> Wanted
// Evidence is measured over whole iterations. A measurement is dropped when a member joins or leaves; the last evidence
// stays in use until a new measurement is complete. Pure: no clock, no locks. Not thread-safe.
class ActorDemand {
 public:
  // An estimate that differs from the measured number of actors by at most this share is replaced by that number.
  static constexpr double kTolerance = 0.1;
  // An estimate is at most this factor above or below the measured number of actors; the next measurement corrects it.
  static constexpr double kLargestStep = 2;
  // Minimum length of a measurement.
  static constexpr double kWindowSeconds = 20;

  explicit ActorDemand(const v1::RunConfig& config);

  void Observe(const v1::StatusResponse& status);

  // True until the run is over (finished, stopped or failed).
  bool active() const { return active_; }

  // The number of actors wanted, always within `bounds`. A run that is over, or that trains on a device, wants
  // min_actors. Otherwise at least one actor for each rank, and no more than can work at once. Without evidence: the
  // current number.
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

  const bool on_device_;  // Mode on_device: the run has no actors.
  const bool while_waiting_only_;
  const uint32_t env_groups_;  // Env groups: the most runners that can work at once.

  bool active_ = true;
  uint32_t actors_ = 0, runners_ = 0, ranks_ = 0;  // Live now.
  Members members_;
  uint64_t iteration_ = 0;        // The newest seen.
  std::optional<Reading> begin_;  // At the end of an iteration, with these members.
  std::optional<ActorEvidence> evidence_;
};

}  // namespace skein
