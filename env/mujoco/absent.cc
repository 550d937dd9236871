// SPDX-License-Identifier: Apache-2.0
// What a build without MuJoCo has in place of mujoco_env.cc and library.cc.
#include "absl/strings/str_cat.h"
#include "env/mujoco/library.h"
#include "env/mujoco/mujoco_env.h"

namespace skein {

std::string MujocoLibraryVersion() { return "none"; }

absl::StatusOr<std::unique_ptr<Env>> MakeMujocoEnv(const MujocoTask& task) {
  return absl::FailedPreconditionError(
      absl::StrCat(task.facts().id, " needs MuJoCo, and this program was built without it"));
}

}  // namespace skein
