// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/mujoco/task.h"

namespace skein {

// Makes an environment of a MuJoCo task. Each Step sets the controls and runs frame_skip time steps of the model; the
// task then computes reward, termination and observation. A simulation that has diverged returns NaN rewards (see
// Env::Step).
// All environments of a task share one compiled model, and on a thread the memory that MuJoCo works in (mjData).
// InvalidArgument: the model lacks a body that the task looks up; FindMujocoTask gives no such task.
// Internal: MuJoCo does not accept the task's own model. FailedPrecondition: built without MuJoCo.
absl::StatusOr<std::unique_ptr<Env>> MakeMujocoEnv(std::shared_ptr<const MujocoTask> task);

// As MakeMujocoTask (task.h); reads the model that the argument xml_file names, if it is given. Errors of reading it:
// NotFound: there is no such file. DataLoss: it is no model, one that is refused (docs/environments.md), one with other
// joints or actuators than the task's own, one that lacks a body that the task looks up, or one with another digest
// than the argument xml_digest, unless that is any.
absl::StatusOr<std::shared_ptr<const MujocoTask>> FindMujocoTask(const std::string& env_id,
                                                                 const MujocoOptions& options = {});

// For the argument xml_digest: of the model that xml_file names; empty without one. Errors of reading it as
// FindMujocoTask.
absl::StatusOr<std::string> UserModelDigest(const std::string& env_id, const MujocoOptions& options);

}  // namespace skein
