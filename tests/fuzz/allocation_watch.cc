// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/allocation_watch.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace {
thread_local size_t largest_allocation = 0;
}

#if !defined(SKEIN_SANITIZED)
void* operator new(size_t size) {
  largest_allocation = std::max(largest_allocation, size);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

// Torch's allocator calls it.
extern "C" int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  largest_allocation = std::max(largest_allocation, size);
  *memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  return *memory == nullptr ? ENOMEM : 0;
}
#endif

namespace skein::fuzz {

AllocationWatch::AllocationWatch() { largest_allocation = 0; }

size_t AllocationWatch::largest() const { return largest_allocation; }

}  // namespace skein::fuzz
