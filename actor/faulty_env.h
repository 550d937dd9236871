// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "env/env.h"

namespace skein {

// Returns `env`, or a wrapper of it that fails where SKEIN_FAULTS says so (FaultPoint::kEnv, once per step): it throws,
// crashes, never returns, or observes a number that is not finite or one number too many.
std::unique_ptr<Env> MakeFaulty(std::unique_ptr<Env> env);

}  // namespace skein
