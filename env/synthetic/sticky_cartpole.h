// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "env/env.h"

namespace skein {

// StickyCartPole-v0: CartPole-v1 whose state cannot be saved, as a world in another process would be. For tests and
// diagnosis of how such environments are trained (EnvSpec::relocatable); its episodes are CartPole's.
const EnvSpec& StickyCartPoleSpec();
std::unique_ptr<Env> MakeStickyCartPole();

}  // namespace skein
