// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace skein {

// Version of the protocol between the members of a run. Another major version is refused; the error names both.
// 2: trajectories travel as frames (trajectory/frame.h).
inline constexpr unsigned kProtocolMajor = 2;
inline constexpr unsigned kProtocolMinor = 0;

}  // namespace skein
