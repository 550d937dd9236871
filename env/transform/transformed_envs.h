// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "env/env.h"
#include "env/transform/transform.h"

// A part of transform.h: the changes that each kind of transform makes.
namespace skein {

// Makes of a policy's action what an environment `inner` gets. action and changed: [D]; they may be the same.
using ActionChange = void (*)(const EnvSpec& inner, const float* action, float* changed);

// Null if transforms of this kind leave actions as they are.
ActionChange ActionChangeOf(TransformOptions::Kind kind);

// Puts one transform around each of `envs`, which were made together and have the spec transform.inner.
void WrapInTransform(const Transform& transform, std::vector<std::unique_ptr<Env>>* envs);

}  // namespace skein
