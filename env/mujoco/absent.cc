// SPDX-License-Identifier: Apache-2.0
// What a build without MuJoCo has in its place.
#include "env/mujoco/half_cheetah.h"
#include "env/mujoco/library.h"

namespace skein {

std::string MujocoLibraryVersion() { return "none"; }

absl::StatusOr<std::unique_ptr<Env>> MakeHalfCheetah() {
  return absl::FailedPreconditionError("HalfCheetah-v5 needs MuJoCo, and this program was built without it");
}

}  // namespace skein
