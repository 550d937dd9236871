// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>

namespace skein {

// Hardware threads that this process may use; 1 where the system does not say.
inline uint32_t Cores() { return std::max(1u, std::thread::hardware_concurrency()); }

}  // namespace skein
