// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "env/env.h"
#include "env/transform/transform.h"

namespace skein {

// Puts one transform around each of `envs`, which were made together and have the spec transform.inner.
void WrapInTransform(const Transform& transform, std::vector<std::unique_ptr<Env>>* envs);

}  // namespace skein
