// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "env/transform/transform.h"

namespace skein {

// Writes transforms as a JSON list for programs that play a policy without Skein. Items are in order and have all
// values that follow from the environment; "[]" if there are none (docs/policy-format.md):
//   [{"hide": {"keep": [0, 2], "of": 3}}, {"stack": 4}, {"scale": {"low": [-2], "high": [2]}}, {"reward_scale": 0.1}]
std::string TransformsJson(const std::vector<Transform>& transforms);

}  // namespace skein
