// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace skein {

// Kills the processes of a foreign program if this process ends without having ended them, as by SIGKILL. For programs
// that do not notice by themselves that nobody is there any more; they have a second for that. A shell waits for it,
// whose input is a socket of this process. Not thread-safe.
class ProcessGuard {
 public:
  // `group`: a process group, of a child of this process. Where no shell can be started, nothing is guarded.
  explicit ProcessGuard(pid_t group);
  // From now on nothing is killed. REQUIRES for that to be in time: the group has been reaped just now, or not yet.
  ~ProcessGuard();
  ProcessGuard(const ProcessGuard&) = delete;
  ProcessGuard& operator=(const ProcessGuard&) = delete;

 private:
  pid_t pid_ = -1;  // The shell's.
  int fd_ = -1;
};

}  // namespace skein
