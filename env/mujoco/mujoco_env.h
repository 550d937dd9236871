// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "env/env.h"
#include "env/mujoco/task.h"

namespace skein {

// An environment of a MuJoCo task. A decision sets the controls and steps the model frame_skip times; the task then
// says the reward, the end and the observation. A simulation that has diverged rewards with NaN (see Env::Step).
// All environments of a task share one compiled model. `task` must outlive it.
// Internal: the linked MuJoCo does not accept the model, or its sizes are not the task's. FailedPrecondition: built
// without MuJoCo.
absl::StatusOr<std::unique_ptr<Env>> MakeMujocoEnv(const MujocoTask& task);

}  // namespace skein
