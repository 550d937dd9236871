// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "env/mujoco/mjcf_tags.h"

namespace skein {

// Why MuJoCo must not see a model with these tags, in its own words; or empty. It would read files, or allocate or
// compute without bounds, where MuJoCo ends the process. Limits: 20,000 tags, 1,000 bodies and as many geoms, 200
// joints, textures of 192 MiB together, and sizes and iterations of their own. REQUIRES: includes are in their places.
std::string ModelDanger(const std::vector<MjcfTag>& tags);

}  // namespace skein
