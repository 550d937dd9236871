// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "env/env.h"

namespace skein {

// CartPole-v1: a pole on a cart, kept upright by pushing the cart left (0) or right (1).
// Barto, Sutton, Anderson 1983, "Neuronlike adaptive elements that can solve difficult learning control problems".
// obs: x, x', theta, theta'. State saved: the same four.
const EnvSpec& CartPoleSpec();
std::unique_ptr<Env> MakeCartPole();

}  // namespace skein
