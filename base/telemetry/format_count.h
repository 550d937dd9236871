// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace skein {

// 1234567 -> "1,234,567"
std::string FormatCount(uint64_t count);

}  // namespace skein
