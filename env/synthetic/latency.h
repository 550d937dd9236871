// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "env/env.h"

namespace skein {

// Settings of Latency-v0: the time that a step sleeps. By default a step does not sleep. The data do not depend on
// these settings.
struct LatencyOptions {
  enum class Distribution { kFixed, kExponential, kPareto };

  double step_ms = 0;  // Mean time of a step, >= 0.
  Distribution distribution = Distribution::kFixed;
  uint64_t slow_envs = 0;   // Environments 0 .. slow_envs - 1 of the run ...
  double slow_factor = 10;  // ... take this many times as long, > 0.
};

// Latency-v0: sleeps instead of computing, to study waiting, stragglers and many actors on few cores. The task is to
// follow an oscillation with one continuous action. It never terminates.
// obs: sin p, cos p, sin 2p, cos 2p. State saved: initial phase, steps, key of the episode's sleep durations.
const EnvSpec& LatencySpec();

// Sleep durations are also multiplied by LatencyFactor(). InvalidArgument: the factor is not a number in range.
absl::StatusOr<std::unique_ptr<Env>> MakeLatency(const LatencyOptions& options);

// The value of the environment variable SKEIN_LATENCY_FACTOR, read at the first call. It simulates a slower or faster
// machine. Unset or empty = 1. Thread-safe. InvalidArgument as ParseLatencyFactor.
const absl::StatusOr<double>& LatencyFactor();

// InvalidArgument: not a number from 0 to 10,000.
absl::StatusOr<double> ParseLatencyFactor(const char* text);

// Duration of step `step` of an episode with this key in environment `env_index`; at most a day. Pure.
// Pareto: index 2.5, smallest duration 0.6 of the mean.
absl::Duration LatencyOfStep(const LatencyOptions& options, uint64_t env_index, uint64_t key, uint32_t step);

// Keeps the sum of sleeps exact: after a sleep that ended late, the next ones are shorter. At most `most` of delay is
// made up for, so that a process that was stopped does not run fast afterwards. All times are of one clock. Not
// thread-safe.
class SleepLedger {
 public:
  explicit SleepLedger(absl::Duration most) : most_(most) {}
  // When to wake from a sleep of `length` that begins at `now`; not before `now`.
  absl::Duration Deadline(absl::Duration now, absl::Duration length);
  // The sleep until `deadline` ended at `now`.
  void Woke(absl::Duration deadline, absl::Duration now);

 private:
  const absl::Duration most_;
  absl::Duration owed_ = absl::ZeroDuration();  // Excess sleep so far; 0 <= owed_ <= most_.
};

}  // namespace skein
