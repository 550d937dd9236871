// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "env/mujoco/task.h"

// The common part of Hopper-v5 and Walker2d-v5: a planar body walks to the right, at 125 decisions a second, until it
// falls. Positions are trunk x, z, pitch, then one of each leg joint; a motor drives each leg joint.
// obs: the positions (without x by default), then the velocities within [-10, 10].
namespace skein {

// In which a body is healthy, without the ends. `state`: all positions but x and z, and all velocities.
struct PlanarHealth {
  MujocoArguments::Range z, pitch, state;  // m, rad, -
};

// `facts`: id, summary, model, positions, camera and reward threshold; the rest is added.
std::unique_ptr<const MujocoTask> MakePlanarWalker(MujocoArguments& arguments, MujocoTask::Facts facts,
                                                   const PlanarHealth& health);

}  // namespace skein
