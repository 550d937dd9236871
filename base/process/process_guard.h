// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>

namespace skein {

class Subprocess;

// Kills a foreign program after this process has ended without ending it, as by SIGKILL. Such a program may not notice
// that by itself; it has one second to do so. A shell beside it does the killing: it waits for the end of its input,
// which this process holds open. Not thread-safe.
class ProcessGuard {
 public:
  // `group`: the process group of a child of this process. If no shell can be started, nothing is guarded.
  explicit ProcessGuard(pid_t group);
  // Ends the guard; nothing is killed from then on. Destroy it as soon as the child has been reaped: its number may be
  // given to another process group.
  ~ProcessGuard();
  ProcessGuard(const ProcessGuard&) = delete;
  ProcessGuard& operator=(const ProcessGuard&) = delete;

 private:
  std::unique_ptr<Subprocess> shell_;
  int input_ = -1;  // A socket: its other end is the shell's.
};

}  // namespace skein
