// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace skein {

// Reports an operation that hangs.   Begin -> (the operation) -> a Watching goes out of scope
// Every collective has its own deadline; the watchdog acts on one that does not keep it. Its thread polls, so that to
// begin or end a watch wakes no thread.
class Watchdog {
 public:
  // Called on the watchdog's thread, once for each watched operation that has taken `limit`. Null: the process ends
  // with exit code 75.
  using OnStuck = std::function<void(const std::string& what)>;
  Watchdog(absl::Duration limit, OnStuck on_stuck);
  ~Watchdog();

  // An operation begins. One operation at a time.
  void Begin(std::string what);
  // Ends the watch at the end of its scope.
  class [[nodiscard]] Watching {
   public:
    explicit Watching(Watchdog* watchdog) : watchdog_(watchdog) {}
    ~Watching() { watchdog_->Done(); }
    Watching(const Watching&) = delete;
    Watching& operator=(const Watching&) = delete;

   private:
    Watchdog* const watchdog_;
  };

 private:
  void Done();
  void Run();

  const absl::Duration limit_;
  const OnStuck on_stuck_;
  absl::Mutex mu_;
  std::optional<std::string> what_ ABSL_GUARDED_BY(mu_);  // The operation under way.
  absl::Duration since_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace skein
