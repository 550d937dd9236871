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

// Threads that repeatedly share short pieces of work with their caller. After a piece they wait actively for about
// 50 us before they sleep. (Torch's own pool is parallel only in programs compiled for OpenMP.) Not thread-safe.
class ThreadTeam {
 public:
  // Starts `helpers` threads, which have the caller's niceness. Throws std::system_error if a thread cannot be started.
  explicit ThreadTeam(int helpers);
  ~ThreadTeam();

  int size() const { return 1 + static_cast<int>(helpers_.size()); }  // Including the caller.
  // Runs work(0) on the calling thread and work(1) to work(count - 1) on helpers, concurrently. Returns when all are
  // done, or then throws the exception of the lowest-numbered call that threw. REQUIRES: 1 <= count <= size().
  void Run(int count, const std::function<void(int)>& work);

 private:
  struct Helper {
    std::atomic<uint32_t> orders{0};  // Counts pieces of work.
    std::exception_ptr error;
    std::thread thread;
  };
  void Serve(int number);
  void Stop();
  // Returns `value` once it differs from `old`. Waits actively at first, then sleeps until Wake().
  uint32_t WaitForChange(const std::atomic<uint32_t>& value, uint32_t old);
  // Makes sleeping threads check their value again.
  void Wake() { const absl::MutexLock lock(&mu_); }

  std::vector<std::unique_ptr<Helper>> helpers_;
  // Of the current piece; written before `orders` is increased.
  const std::function<void(int)>* work_ = nullptr;  // Null: helpers end.
  std::atomic<uint32_t> pending_{0};                // Helpers that still work on the piece.
  absl::Mutex mu_;                                  // Guards no data; threads sleep on it.
};

}  // namespace skein
