// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "env/synthetic/latency.h"
#include "env/uav/uav_options.h"

namespace skein {

// What particular environments can be told; the others do not read it.
struct EnvOptions {
  LatencyOptions latency;  // Latency-v0
  UavOptions uav;          // UavNavigate-v0, UavCover-v0
};

}  // namespace skein
