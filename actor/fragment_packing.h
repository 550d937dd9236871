// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "skein/v1/config.pb.h"
#include "trajectory/frame.h"
#include "trajectory/schema.h"

namespace skein {

// Gives a finished fragment the form in which the run's trajectories travel.   RolloutBuilder -> PackFragment -> Outbox
// bf16: observed fields become bfloat16; log_prob, action and reward do not, since importance ratio and objective are
// made of them. zstd: every large field is compressed, if that makes it smaller. fp32 and none: nothing happens.
// Sets saved_bytes. Thread-safe. REQUIRES: the fragment was built with `schema` and is not packed.
void PackFragment(const Schema& schema, const v1::TransportConfig& transport, Fragment* fragment);

}  // namespace skein
