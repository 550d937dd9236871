// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "skein/v1/config.pb.h"
#include "skein/v1/trajectory.pb.h"

namespace skein {

// Gives a finished fragment the form in which the run's trajectories travel.   RolloutBuilder -> PackBatch -> Outbox
// bf16: obs and final_obs become bfloat16; log_prob, action and reward do not, since importance ratio and objective are
// made of them. zstd: every large tensor is compressed, if that makes it smaller. fp32 and none: nothing happens.
// Pure, thread-safe.
void PackBatch(const v1::TransportConfig& transport, v1::TrajectoryBatch* batch);

}  // namespace skein
