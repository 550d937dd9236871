// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/time/time.h"

namespace skein {

// SIGTERM and SIGINT as a callback on an ordinary thread, where locks may be taken.
// Construct first thing in main(), one at a time: the signals are blocked in all later threads, and handed on by those
// that libraries have started before.
// The first signal calls `on_signal` once; a second one ends the process at once with 128 + signal number. What comes
// within `same` of the first is the same wish told twice: a cluster's scheduler signals a process and its parent, which
// hands it on.
class ShutdownSignal {
 public:
  explicit ShutdownSignal(absl::Duration same = absl::Milliseconds(500));
  ~ShutdownSignal();
  ShutdownSignal(const ShutdownSignal&) = delete;
  ShutdownSignal& operator=(const ShutdownSignal&) = delete;

  // At once if the signal has come already. Replaces the callback before; an empty function removes it. Waits for a
  // callback that is running, unless called from it.
  void OnSignal(std::function<void()> on_signal);
  bool signalled() const;

 private:
  class Impl;
  Impl* impl_;
};

// Ends this process with SIGTERM when its parent dies (prctl); for children of `skein train`. The kernel means the
// thread that spawned it: spawn from one that lives as long as the process.
void ExitWithParent();

}  // namespace skein
