// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "env/env_activity.h"
#include "env/vector_env.h"

namespace skein {

// Env steps per second that `threads` threads (of them as many as there are cores) reach at stepping these environments
// with random actions and nothing else: the limit that an actor's efficiency is measured against. Takes `duration` and
// the time to make a few environments. They are its own, with streams of their own: the data do not depend on it.
// 0: the environment sleeps instead of computing (Latency-v0), so it has no limit, or it failed; nothing is measured.
// `activities`: empty, or one for each thread, to be told where its environments are.
// Errors as VectorEnv::Make.
absl::StatusOr<double> MeasureEnvLimit(VectorEnv::Options options, uint32_t threads, absl::Duration duration,
                                       const std::vector<EnvActivity*>& activities = {});

}  // namespace skein
