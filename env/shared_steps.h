// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace skein {

// Hands the environments of a VectorEnv's step to several threads, each environment to one of them. Its owner calls
// StepAll; any number of helpers call Help meanwhile.   VectorEnv::Step, VectorEnv::Help -> SharedSteps
// Thread-safe as said; REQUIRES: all helpers have returned before this is destroyed.
class SharedSteps {
 public:
  using StepOne = absl::FunctionRef<void(uint32_t e)>;

  explicit SharedSteps(uint32_t count) : count_(count) {}  // Environments, at most 2^30.

  // Returns when each environment has been stepped once, by `step` or by a helper's. `pause` is called when nothing is
  // left to be begun here. Allocates nothing.
  void StepAll(StepOne step, absl::FunctionRef<void()> pause);

  // Steps environments that StepAll has not come to yet, in this and the following calls of it, until `leave` says so,
  // which is asked before each environment and after each sleep. Sleeps where there is nothing to step, until the next
  // StepAll or Wake; `pause` is called before. Returns how long it has stepped.
  absl::Duration Help(StepOne step, absl::FunctionRef<bool()> leave, absl::FunctionRef<void()> pause);
  void Wake();
  absl::Duration TakeHelped() { return absl::Nanoseconds(helped_.exchange(0)); }  // Since this was last asked.

 private:
  static constexpr uint32_t kNoStep = 1u << 30;  // No environment has this number.

  uint32_t StepSome(StepOne step, absl::FunctionRef<bool()> leave);

  const uint32_t count_;
  std::atomic<uint32_t> helpers_{0};     // So many look for environments to step.
  std::atomic<uint32_t> calls_{0};       // Counts what helpers wake up for.
  std::atomic<uint32_t> next_{kNoStep};  // The next environment to be stepped; from count_ on: none.
  std::atomic<uint32_t> stepped_{0};     // So many have been.
  std::atomic<int64_t> helped_{0};       // Nanoseconds that helpers have stepped.
};

}  // namespace skein
