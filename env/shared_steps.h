// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace skein {

// Distributes one VectorEnv step over several threads; one thread steps each environment. The owner calls StepAll; any
// number of helper threads call Help at the same time.   VectorEnv::Step, VectorEnv::Help -> SharedSteps
// Thread-safe within these rules. REQUIRES: all helpers have returned before this is destroyed.
class SharedSteps {
 public:
  using StepOne = absl::FunctionRef<void(uint32_t e)>;

  explicit SharedSteps(uint32_t count) : count_(count) {}  // Environments, at most 2^30.

  // Returns when each environment has been stepped once, by `step` or by a helper's `step`. `pause` is called when no
  // environment is left that this thread can begin. Allocates nothing.
  void StepAll(StepOne step, absl::FunctionRef<void()> pause);

  // Steps environments that StepAll has not begun, in this and the following calls of StepAll, until `leave` returns
  // true. `leave` is called before each environment and after each sleep. Sleeps while there is nothing to step, until
  // the next StepAll or Wake; `pause` is called before. Returns the time spent stepping.
  absl::Duration Help(StepOne step, absl::FunctionRef<bool()> leave, absl::FunctionRef<void()> pause);
  void Wake();
  absl::Duration TakeHelped() { return absl::Nanoseconds(helped_.exchange(0)); }  // Helpers' time since the last call.

 private:
  static constexpr uint32_t kNoStep = 1u << 30;  // No environment has this number.

  uint32_t StepSome(StepOne step, absl::FunctionRef<bool()> leave);

  const uint32_t count_;
  std::atomic<uint32_t> helpers_{0};     // Threads in Help.
  std::atomic<uint32_t> calls_{0};       // Incremented to wake helpers.
  std::atomic<uint32_t> next_{kNoStep};  // The next environment to be stepped; >= count_: none.
  std::atomic<uint32_t> stepped_{0};     // Environments stepped in this StepAll.
  std::atomic<int64_t> helped_{0};       // Nanoseconds that helpers have stepped.
};

}  // namespace skein
