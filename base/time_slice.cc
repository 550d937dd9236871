// SPDX-License-Identifier: Apache-2.0
#include "base/time_slice.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace skein {
namespace {

// glibc has names for these calls from 2.41 on only.
bool Read(sched_attr* attributes) { return syscall(SYS_sched_getattr, 0, attributes, sizeof(*attributes), 0) == 0; }

uint64_t Runtime() {
  sched_attr attributes = {};
  return Read(&attributes) ? attributes.sched_runtime : 0;
}

}  // namespace

void UseTimeSlice(TimeSlice slice) {
  constexpr uint64_t kShortest = 100'000;  // Nanoseconds; Linux has no shorter ones.
  static const uint64_t usual = Runtime();
  sched_attr attributes = {};
  if (usual == 0 || !Read(&attributes) || attributes.sched_policy != SCHED_NORMAL) return;
  attributes.sched_runtime = slice == TimeSlice::kShort ? kShortest : usual;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace skein
