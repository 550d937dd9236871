// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "env/mujoco/task.h"

namespace skein {

// A value of the argument xml_digest: whatever the file is.
inline constexpr char kAnyModelDigest[] = "any";

// Reads a model that the user gave, resolves its includes, and compiles it once for its facts.
// `own` is the task as it is without the user's model, whose joints and actuators it must have (same_joints.h).
// Limits: files of 1 MiB together, 16 includes, those of user_model_limits.h; only files in the model's own folder or
// below; no meshes, height fields, textures from files, skins, plugins or generated bodies (composite, flexcomp,
// replicate), so that a model is its text. NotFound: there is no such file. DataLoss: it is refused, or MuJoCo does not
// accept it; the message names the file.
absl::StatusOr<MujocoModelFacts> ReadUserModel(const std::string& path, const MujocoTask& own);

}  // namespace skein
