// SPDX-License-Identifier: Apache-2.0
// What a build without MuJoCo has in place of mujoco_env.cc and library.cc.
#include "absl/strings/str_cat.h"
#include "env/mujoco/library.h"
#include "env/mujoco/mujoco_env.h"

namespace skein {

std::string MujocoLibraryVersion() { return "none"; }

absl::StatusOr<std::unique_ptr<Env>> MakeMujocoEnv(std::shared_ptr<const MujocoTask> task) {
  return absl::FailedPreconditionError(
      absl::StrCat(task->facts().id, " needs MuJoCo, and this program was built without it"));
}

absl::StatusOr<std::shared_ptr<const MujocoTask>> FindMujocoTask(const std::string& env_id,
                                                                 const MujocoOptions& options) {
  if (!TextOf(options, "xml_file").empty()) {
    return absl::FailedPreconditionError("env.mujoco.xml_file needs MuJoCo, and this program was built without it");
  }
  return MakeMujocoTask(env_id, options);
}

absl::StatusOr<std::string> UserModelDigest(const std::string& env_id, const MujocoOptions& options) {
  if (TextOf(options, "xml_file").empty()) return std::string();
  return FindMujocoTask(env_id, options).status();
}

}  // namespace skein
