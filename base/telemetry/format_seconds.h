// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

std::string FormatSeconds(double seconds);  // 83 -> "1m23s"; negative, infinite or NaN -> "-"

}  // namespace skein
