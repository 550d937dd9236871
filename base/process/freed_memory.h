// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <malloc.h>

namespace skein {

// Makes malloc keep freed memory of up to 64 MiB in one piece for the next request. By default glibc returns a piece as
// large as a rollout fragment to the kernel, and the next fragment costs a page fault for every 4 KiB. Call it once,
// before threads allocate such pieces.
inline void KeepFreedMemory() {
  constexpr int kMebibyte = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 64 * kMebibyte);
  mallopt(M_TRIM_THRESHOLD, 128 * kMebibyte);
}

}  // namespace skein
