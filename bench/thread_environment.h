// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace skein {

// Makes the linear algebra library use `threads` threads. The library reads its environment when it is loaded, so if
// that sets another number this process restarts itself once with the same arguments. Internal: the restart failed.
absl::Status EnsureTorchThreads(uint32_t threads);

// Removes the thread limit that `skein bench` sets for this process, so that child processes choose their own.
void LetChildrenChooseThreads();

}  // namespace skein
