// SPDX-License-Identifier: Apache-2.0
// The actors that the learner's tests play, and the size of what they send.
#pragma once

#include <cstdint>

#include "learner/collect/connection_id.h"

namespace skein {

inline const ConnectionId kAda{"ada", 1}, kBob{"bob", 1};
inline constexpr uint64_t kFragmentSteps = 4;  // T=2 x E=2.

}  // namespace skein
