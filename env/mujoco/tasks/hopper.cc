// SPDX-License-Identifier: Apache-2.0
// Hopper-v5: a planar leg hops to the right, at 125 decisions a second, until it falls (planar_walker.h).
// Erez, Tassa, Todorov 2011, "Infinite-horizon model predictive control"; numbers as in Gymnasium's version 5.
// 6 degrees of freedom, in this order: trunk x, z, pitch; hip, knee, ankle.
#include <limits>

#include "env/mujoco/tasks/planar_walker.h"

namespace skein {
namespace embedded {
absl::string_view hopper_xml();
}  // namespace embedded

std::unique_ptr<const MujocoTask> MakeHopper(MujocoArguments& arguments) {
  return MakePlanarWalker(arguments,
                          {.id = "Hopper-v5",
                           .summary = "Hop to the right on one planar leg without falling (MuJoCo).",
                           .mjcf = embedded::hopper_xml(),
                           .positions = 6,
                           .reward_threshold = 3800,
                           .camera = {.track_body = "trunk", .height = 0.8, .distance = 3}},
                          {.z = arguments.Between("healthy_z_range", {0.7, std::numeric_limits<double>::infinity()}),
                           .pitch = arguments.Between("healthy_angle_range", {-0.2, 0.2}),
                           .state = arguments.Between("healthy_state_range", {-100, 100})});
}

}  // namespace skein
