// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace skein {

// Threads that share short pieces of work with their caller, again and again: between two pieces they stay awake for
// some 50 us. (Torch's own pool runs in parallel only where a program is compiled for OpenMP.) Not thread-safe.
class ThreadTeam {
 public:
  // Starts `helpers` threads, which are as nice as the caller. Throws std::system_error: there may be no more.
  explicit ThreadTeam(int helpers);
  ~ThreadTeam();

  int size() const { return 1 + static_cast<int>(helpers_.size()); }  // With the caller.
  // work(0) on the calling thread, work(1) to work(count - 1) on helpers, all at once. When all are done, throws what
  // the first of them has thrown. REQUIRES: 1 <= count <= size().
  void Run(int count, const std::function<void(int)>& work);

 private:
  struct Helper {
    std::atomic<uint32_t> orders{0};  // Counts pieces of work.
    std::exception_ptr error;
    std::thread thread;
  };
  void Serve(int number);
  void Stop();
  // Returns what `value` is when that is not `old` any more: awake at first, then asleep until Wake().
  uint32_t WaitForChange(const std::atomic<uint32_t>& value, uint32_t old);
  // Whoever sleeps looks again.
  void Wake() { const absl::MutexLock lock(&mu_); }

  std::vector<std::unique_ptr<Helper>> helpers_;
  // Of the present piece; written before orders are given.
  const std::function<void(int)>* work_ = nullptr;  // Null: the end.
  std::atomic<uint32_t> pending_{0};                // Helpers that are at it.
  absl::Mutex mu_;                                  // Guards nothing; to sleep by.
};

}  // namespace skein
