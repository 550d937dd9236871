// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "env/env.h"

namespace skein {

// StickyCartPole-v0: CartPole-v1 whose state cannot be saved, like an environment in another process. For tests and
// diagnosis of training with such environments (EnvSpec::relocatable). Its episodes are those of CartPole-v1.
const EnvSpec& StickyCartPoleSpec();
std::unique_ptr<Env> MakeStickyCartPole();

}  // namespace skein
