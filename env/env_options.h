// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "env/external/external_options.h"
#include "env/mujoco/arguments.h"
#include "env/synthetic/latency.h"
#include "env/uav/uav_options.h"

namespace skein {

// Settings of particular environments. Each environment reads only its own.
struct EnvOptions {
  LatencyOptions latency;    // Latency-v0
  UavOptions uav;            // UavNavigate-v0, UavCover-v0
  MujocoOptions mujoco;      // The MuJoCo environments
  ExternalOptions external;  // Environments that are no part of Skein
};

}  // namespace skein
