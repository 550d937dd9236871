// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "learner/ranks/watchdog.h"

// Runs an operation of several ranks and turns its errors into a status.
namespace skein {

// The message of what c10d threw, without a backtrace.
std::string Reason(const std::exception& error);

// An operation that several ranks take part in, timed: errors of every kind become a status here.
// DeadlineExceeded: another rank is late. Unavailable: another rank is gone. Not thread-safe.
class Attempt {
 public:
  // The operation begins now and fails after `timeout`. `watchdog` must outlive this.
  Attempt(std::string what, absl::Duration timeout, Watchdog* watchdog);

  absl::Time deadline() const { return deadline_; }

  // Around all that waits for other ranks.
  Watchdog::Watching Watch() const;

  // c10d does not tell a deadline from a lost connection by the exception's type; the clock does.
  absl::Status Classify(const std::exception& error) const;
  // The status of the operation, with what was attempted and what to do.
  absl::Status Failed(const std::exception& error) const { return Failed(Classify(error)); }
  absl::Status Failed(const absl::Status& status) const;

  // Calls `operation`, which returns a status; what c10d throws in it becomes one.
  template <typename Operation>
  auto Guarded(Operation operation) const -> decltype(operation()) {
    try {
      return operation();
    } catch (const std::exception& error) {
      return Classify(error);
    }
  }

 private:
  const std::string what_;
  const absl::Duration timeout_;
  const absl::Time deadline_;
  Watchdog* const watchdog_;
};

}  // namespace skein
