// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/mujoco/task.h"

namespace skein {

// Makes an environment of a MuJoCo task. Each Step sets the controls and runs frame_skip time steps of the model; the
// task then computes reward, termination and observation. A simulation that has diverged returns NaN rewards (see
// Env::Step).
// All environments of a task share one compiled model. `task` must outlive the environment.
// Internal: the linked MuJoCo does not accept the model, or its sizes differ from the task's. FailedPrecondition: built
// without MuJoCo.
absl::StatusOr<std::unique_ptr<Env>> MakeMujocoEnv(const MujocoTask& task);

}  // namespace skein
