// SPDX-License-Identifier: Apache-2.0
// Walker2d-v5: a planar body on two legs walks to the right, at 125 decisions a second, until it falls
// (planar_walker.h).
// Erez, Tassa, Todorov 2011, "Infinite-horizon model predictive control"; numbers as in Gymnasium's version 5.
// 9 degrees of freedom, in this order: trunk x, z, pitch; right hip, knee, ankle; left hip, knee, ankle.
#include <limits>

#include "env/mujoco/tasks/planar_walker.h"

namespace skein {
namespace embedded {
absl::string_view walker2d_xml();
}  // namespace embedded

std::unique_ptr<const MujocoTask> MakeWalker2d(MujocoArguments& arguments) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  return MakePlanarWalker(arguments,
                          {.id = "Walker2d-v5",
                           .summary = "Walk to the right on two planar legs without falling (MuJoCo).",
                           .mjcf = embedded::walker2d_xml(),
                           .positions = 9,
                           .camera = {.track_body = "trunk", .height = 0.8}},
                          {.z = arguments.Between("healthy_z_range", {0.8, 2}),
                           .pitch = arguments.Between("healthy_angle_range", {-1, 1}),
                           .state = {-kAny, kAny}});
}

}  // namespace skein
