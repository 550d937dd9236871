// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/time/time.h"

namespace skein {

// Turns SIGTERM, SIGINT and SIGHUP (a terminal that is closed; not under nohup) into a callback on an ordinary thread,
// which may take locks.
// Construct it first in main(), only one at a time: it blocks the signals in all later threads. Threads that libraries
// started earlier forward them.
// The first signal calls `on_signal` once; a second SIGTERM or SIGINT ends the process at once with 128 + signal
// number. Signals within `same` of the first are ignored: a cluster's scheduler signals a process and also its parent,
// which forwards the signal to the process.
class ShutdownSignal {
 public:
  explicit ShutdownSignal(absl::Duration same = absl::Milliseconds(500));
  ~ShutdownSignal();
  ShutdownSignal(const ShutdownSignal&) = delete;
  ShutdownSignal& operator=(const ShutdownSignal&) = delete;

  // Sets the callback, which runs at once if the signal has come already. It replaces an earlier one; an empty function
  // removes it. Waits for a running callback, unless called from it.
  void OnSignal(std::function<void()> on_signal);
  bool signalled() const;

 private:
  class Impl;
  Impl* impl_;
};

// Ends this process when its parent dies; for children of `skein train`: at once with SIGTERM, and if that takes longer
// than `limit` (an environment hangs, a file system does not answer), by _exit(75) from a thread of its own. For the
// kernel, the parent is the spawning thread: spawn from a thread that lives as long as its process. Call once.
void ExitWithParent(absl::Duration limit = absl::Seconds(8));

}  // namespace skein
