// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "env/mujoco/mjcf_tags.h"

namespace skein {

// Checks a model's tags before MuJoCo reads it. Returns why MuJoCo must not read the model, named by the tag;
// empty: it may. Such a model would make MuJoCo read files, or allocate or compute without bounds, where MuJoCo ends
// the process. Limits: 20,000 tags; 1,000 each of bodies, geoms, sites, contact pairs, excluded contacts, sensors, keys
// and classes of defaults; 200 each of joints, actuators, equality constraints and tendons; 2,000 parts of tendons; 100
// each of cameras and lights; textures of 192 MiB together; and sizes and iterations of their own.
// REQUIRES: includes are in their places.
std::string ModelDanger(const std::vector<MjcfTag>& tags);

}  // namespace skein
