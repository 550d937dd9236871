// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace skein {

// The current test will make MuJoCo warn this many times; without it, any warning fails a test.
void ExpectMujocoWarnings(int64_t count);

}  // namespace skein
