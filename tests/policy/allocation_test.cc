// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/policy/make_policy.h"

namespace {
std::atomic<int64_t> allocations{0};
}

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// Not inlined: GCC would see what is made by `new` freed by free().
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace skein {
namespace {

TEST(Policy, AllocatesNothingAfterTheFirstActOfAsManyRows) {
  constexpr int64_t kRows = 33;
  for (const MemoryKind memory : {MemoryKind::kNone, MemoryKind::kGru, MemoryKind::kLstm}) {
    PolicySpec spec;
    spec.obs_size = 17;
    spec.action_size = 6;
    spec.hidden = {64, 64};
    spec.memory = memory;
    spec.memory_size = memory == MemoryKind::kNone ? 0 : 24;
    const std::shared_ptr<const Policy> policy = RandomPolicy(1, spec);
    std::vector<float> obs(kRows * 17, 0.5f), state(kRows * spec.state_size()), head(kRows * spec.head_size());
    policy->Act(obs.data(), state.data(), kRows, head.data(), state.data());
    const int64_t before = allocations;
    EXPECT_GT(before, 0);  // The counter counts.
    for (int64_t step = 0; step < 10; ++step) policy->Act(obs.data(), state.data(), kRows, head.data(), state.data());
    for (int64_t rows : {1, 7, 32}) policy->Act(obs.data(), state.data(), rows, head.data(), state.data());
    EXPECT_EQ(allocations - before, 0) << "memory " << static_cast<int>(memory);
  }
}

}  // namespace
}  // namespace skein
