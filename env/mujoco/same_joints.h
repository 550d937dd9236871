// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mujoco/mujoco.h>

#include <string>

#include "env/mujoco/task.h"

namespace skein {

// Describes in one line the difference between the sizes of `model` and those that the task needs; empty: none. Reads
// sizes only, so that a model with far too many joints costs nothing.
std::string SizeDifference(const MujocoTask& task, const mjModel& model);

// How the joints and actuators of `model` differ from those of `own`, in one line; or empty. They differ where the type
// of a joint, its direction in the initial pose by more than 45 degrees, or the joint that an actuator drives does.
// Directions are taken relative to the body at the root of the joint, wherever it stands. Names and numbers may differ.
// REQUIRES: both have the same numbers of positions, velocities and controls.
std::string JointDifference(const mjModel& own, const mjModel& model);

}  // namespace skein
