// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "env/mujoco/arguments.h"

// Numbers of Gymnasium's `info` besides the terms of the reward and the x-velocity, with its names.
namespace skein {

struct MujocoView;

// A number of `info`. velocity: of MujocoTask::Place over the step, m/s.
struct MujocoInfo {
  std::string name;
  std::function<double(const MujocoView& view, const std::array<double, 3>& velocity)> value;
};

MujocoInfo XPosition();
MujocoInfo YPosition();
MujocoInfo YVelocity();
MujocoInfo DistanceFromOrigin();               // Of the first two positions.
MujocoInfo ZDistanceFromOrigin(int position);  // How far it is from the model's initial pose.

// tendon_length_0, tendon_length_1, ..., tendon_velocity_0, ...: of `own` tendons, or of those of the user's model, of
// which the first 16.
std::vector<MujocoInfo> TendonInfo(const MujocoArguments& arguments, int own);

}  // namespace skein
