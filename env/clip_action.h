// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

// Bounds of actions, as VectorEnv, the transform clip and exported policies keep them.
namespace skein {

// `value` within [low, high]; of NaN `low`.
inline float ClipAction(float value, float low, float high) {
  return value >= low ? std::min(value, high) : low;  // NaN fails the comparison.
}

}  // namespace skein
