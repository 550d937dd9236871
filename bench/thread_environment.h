// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace skein {

// Makes the linear algebra library run with `threads` threads: it reads its environment when it is loaded, so where
// that says something else this process starts itself over, once, with the same arguments. Internal: the system
// refused.
absl::Status EnsureTorchThreads(uint32_t threads);

// `skein bench` allows this process one such thread. Programs that it starts are to choose for themselves.
void LetChildrenChooseThreads();

}  // namespace skein
