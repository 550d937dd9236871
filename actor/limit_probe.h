// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "env/env_activity.h"
#include "env/vector_env.h"

namespace skein {

// Measures the env steps per second that `threads` threads (at most one per core) reach when they only step these
// environments with random actions: the limit that an actor's efficiency is measured against. Takes `duration` and the
// time to make a few environments. The probe has its own environments and random streams: the data do not depend on it.
// 0: the environment sleeps instead of computing (Latency-v0), so it has no limit and is not measured, or is no part of
// Skein and would need servers for it, or it failed.
// `activities`: empty, or one for each thread, to record its environment calls.
// Errors as VectorEnv::Make.
absl::StatusOr<double> MeasureEnvLimit(VectorEnv::Options options, uint32_t threads, absl::Duration duration,
                                       const std::vector<EnvActivity*>& activities = {});

}  // namespace skein
