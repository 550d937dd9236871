// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace skein::fuzz {

// The largest single allocation of this thread since it was constructed: operator new, and Torch's tensors. Always 0
// under sanitizers, which have allocators of their own. One at a time in each thread.
class AllocationWatch {
 public:
  AllocationWatch();
  size_t largest() const;
};

}  // namespace skein::fuzz
