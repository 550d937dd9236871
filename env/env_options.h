// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "env/external/external_options.h"
#include "env/mujoco/arguments.h"
#include "env/synthetic/latency.h"
#include "env/synthetic/repeat_previous.h"
#include "env/transform/transform_options.h"
#include "env/uav/uav_options.h"

namespace skein {

// Settings of particular environments, of which each reads only its own, and transforms, which any of them can have.
struct EnvOptions {
  LatencyOptions latency;                    // Latency-v0
  RepeatPreviousOptions repeat_previous;     // RepeatPrevious-v0
  UavOptions uav;                            // UavNavigate-v0, UavCover-v0
  MujocoOptions mujoco;                      // The MuJoCo environments
  ExternalOptions external;                  // Environments that are no part of Skein
  std::vector<TransformOptions> transforms;  // The first one next to the environment.
};

}  // namespace skein
