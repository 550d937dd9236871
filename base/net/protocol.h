// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace skein {

// Versions of what members of a run say to each other. Another major version is refused, naming both.
// 2: trajectories travel as frames (trajectory/frame.h).
inline constexpr unsigned kProtocolMajor = 2;
inline constexpr unsigned kProtocolMinor = 0;

}  // namespace skein
