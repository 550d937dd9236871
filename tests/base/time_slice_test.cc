// SPDX-License-Identifier: Apache-2.0
#include "base/time_slice.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <thread>

namespace skein {
namespace {

// The kernel's sched_attr; its header cannot be read together with the C library's.
struct Attributes {
  uint32_t size = 48, policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;
};
static_assert(sizeof(Attributes) == 48);

bool Set(Attributes attributes) { return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0; }

Attributes Read() {
  Attributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) attributes.runtime = 0;
  return attributes;
}

TEST(TimeSlice, IsTheThreadsOwnAndItsChildrens) {
  const Attributes before = Read();
  if (before.runtime == 0 || before.policy != 0 || !Set(before)) GTEST_SKIP() << "Linux before 6.12, or not allowed";
  UseTimeSlice(TimeSlice::kShort);
  const Attributes changed = Read();
  EXPECT_EQ(changed.runtime, 100'000u);
  EXPECT_EQ(changed.policy, before.policy);
  EXPECT_EQ(changed.nice, before.nice);
  EXPECT_EQ(changed.flags, before.flags);
  std::thread([&before] {
    EXPECT_EQ(Read().runtime, 100'000u);
    UseTimeSlice(TimeSlice::kUsual);
    EXPECT_EQ(Read().runtime, before.runtime);
  }).join();
  EXPECT_EQ(Read().runtime, 100'000u);
  UseTimeSlice(TimeSlice::kUsual);
  EXPECT_EQ(Read().runtime, before.runtime);
}

}  // namespace
}  // namespace skein
