// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "env/env.h"

namespace skein {

// Pendulum-v1: a motor too weak to lift the pendulum in one go swings it up and holds it; it never terminates.
// obs: cos theta, sin theta, theta'. State saved: theta, theta'.
const EnvSpec& PendulumSpec();
std::unique_ptr<Env> MakePendulum();

}  // namespace skein
