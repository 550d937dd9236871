// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/info.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "env/mujoco/task.h"

namespace skein {
namespace {

using Velocity = std::array<double, 3>;

constexpr int kMostTendons = 16;

}  // namespace

MujocoInfo XPosition() {
  return {"x_position", [](const MujocoView& view, const Velocity&) { return view.qpos[0]; }};
}

MujocoInfo YPosition() {
  return {"y_position", [](const MujocoView& view, const Velocity&) { return view.qpos[1]; }};
}

MujocoInfo YVelocity() {
  return {"y_velocity", [](const MujocoView&, const Velocity& velocity) { return velocity[1]; }};
}

MujocoInfo DistanceFromOrigin() {
  return {"distance_from_origin",
          [](const MujocoView& view, const Velocity&) { return std::sqrt(SumOfSquares(view.qpos, 2)); }};
}

MujocoInfo ZDistanceFromOrigin(int position) {
  return {"z_distance_from_origin",
          [position](const MujocoView& view, const Velocity&) { return view.qpos[position] - view.qpos0[position]; }};
}

std::vector<MujocoInfo> TendonInfo(const MujocoArguments& arguments, int own) {
  const int tendons = arguments.model() == nullptr ? own : std::min(arguments.model()->tendons, kMostTendons);
  std::vector<MujocoInfo> info;
  for (int i = 0; i < tendons; ++i) {
    info.push_back({absl::StrCat("tendon_length_", i),
                    [i](const MujocoView& view, const Velocity&) { return view.ten_length[i]; }});
  }
  for (int i = 0; i < tendons; ++i) {
    info.push_back({absl::StrCat("tendon_velocity_", i),
                    [i](const MujocoView& view, const Velocity&) { return view.ten_velocity[i]; }});
  }
  return info;
}

}  // namespace skein
