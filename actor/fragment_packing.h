// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "skein/v1/config.pb.h"
#include "trajectory/frame.h"
#include "trajectory/schema.h"

namespace skein {

// Converts a finished fragment to the form in which the run sends it.   RolloutBuilder -> PackFragment -> Outbox
// bf16: observed fields become bfloat16; log_prob, action and reward do not, since the importance ratio and the
// objective are computed from them. zstd: every large field is compressed, if that makes it smaller. fp32, none: no
// change.
// Sets saved_bytes. Thread-safe. REQUIRES: the fragment was built with `schema` and is not packed.
void PackFragment(const Schema& schema, const v1::TransportConfig& transport, Fragment* fragment);

}  // namespace skein
