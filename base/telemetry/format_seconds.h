// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

// Durations as people read them, for progress and status.
namespace skein {

std::string FormatSeconds(double seconds);  // 83 -> "1m23s"; negative, infinite or NaN -> "-"

}  // namespace skein
