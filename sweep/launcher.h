// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sweep/space.h"

// The interface through which a sweep runs its trainings.
namespace skein {

// One training of a trial.
struct RunKey {
  bool test = false;  // Of the test study.
  uint32_t trial = 0;
  uint32_t seed_index = 0;

  friend bool operator<(const RunKey& a, const RunKey& b) {
    return std::tie(a.test, a.trial, a.seed_index) < std::tie(b.test, b.trial, b.seed_index);
  }
  friend bool operator==(const RunKey& a, const RunKey& b) { return !(a < b) && !(b < a); }
};

// What a training is to do next.
struct Job {
  RunKey run;
  Point point;
  uint64_t seed = 0;
  uint64_t until = 0;  // Env steps.
};

// How a job has ended.
struct JobEnd {
  enum class How {
    kDone,         // As it was told.
    kInterrupted,  // It was asked to stop.
    kFailed,       // It may be tried again.
    kRefused,      // It would fail again: its configuration is refused.
    kDiskFull,     // It could not write. No fault of its own: the sweep ends, and goes on once there is room.
  };
  RunKey run;
  How how = How::kDone;
  std::string why;
  absl::Duration wall_time;
  uint64_t steps = 0;  // Of its newest checkpoint.
};

// Carries out jobs, each in a slot.
class Launcher {
 public:
  virtual ~Launcher() = default;
  virtual uint32_t free_slots() const = 0;
  // Of the one core-hour of wall time of a slot.
  virtual double cores_per_slot() const = 0;
  // Continues the run from its newest checkpoint, or begins it. Unavailable: its folder is still in use.
  virtual absl::Status Start(const Job& job) = 0;
  virtual bool IsActive(const RunKey& run) const = 0;
  // Asks a job to end with a checkpoint; it then comes out of Poll().
  virtual void Stop(const RunKey& run) = 0;
  virtual std::vector<JobEnd> Poll() = 0;
  // Of jobs that are under way.
  virtual absl::Duration ActiveTime() const = 0;

  // The metric, as the training has it, when the run had trained `steps`: nullopt: it has not yet. NaN: it has, and
  // there is no value. `at_rest`: a job that is under way is to be awaited, and its checkpoint must be there.
  // FailedPrecondition: there is no such metric (names the nearest).
  virtual absl::StatusOr<std::optional<double>> Value(const RunKey& run, uint64_t steps, bool at_rest) = 0;
  // Env steps that the run has trained, about.
  virtual uint64_t Steps(const RunKey& run) = 0;

  // Makes the run `to` a copy of `from`, as that is now: its newest checkpoint. Does nothing if it has been made.
  virtual absl::Status Copy(const RunKey& from, const Job& to) = 0;
};

}  // namespace skein
