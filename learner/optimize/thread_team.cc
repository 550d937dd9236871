// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/thread_team.h"

#include <utility>

#include "absl/time/time.h"
#include "base/process/clock.h"

namespace skein {
namespace {

constexpr absl::Duration kAwake = absl::Microseconds(50);
constexpr int kLooksBetweenClocks = 64;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

uint32_t ThreadTeam::WaitForChange(const std::atomic<uint32_t>& value, uint32_t old) {
  for (const absl::Duration end = MonotonicNow() + kAwake; MonotonicNow() < end;) {
    for (int i = 0; i < kLooksBetweenClocks; ++i) {
      if (const uint32_t now = value.load(std::memory_order_acquire); now != old) return now;
      Pause();
    }
  }
  const auto changed = [&] { return value.load(std::memory_order_acquire) != old; };
  const absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&changed));
  return value.load(std::memory_order_acquire);
}

ThreadTeam::ThreadTeam(int helpers) {
  for (int i = 0; i < helpers; ++i) helpers_.push_back(std::make_unique<Helper>());
  try {
    for (int i = 0; i < helpers; ++i) {
      helpers_[i]->thread = std::thread([this, i] { Serve(i); });
    }
  } catch (...) {
    Stop();
    throw;
  }
}

ThreadTeam::~ThreadTeam() { Stop(); }

void ThreadTeam::Stop() {
  work_ = nullptr;
  for (const auto& helper : helpers_) {
    helper->orders.fetch_add(1, std::memory_order_release);
  }
  Wake();
  for (const auto& helper : helpers_) {
    if (helper->thread.joinable()) helper->thread.join();
  }
}

void ThreadTeam::Run(int count, const std::function<void(int)>& work) {
  work_ = &work;
  pending_.store(static_cast<uint32_t>(count - 1), std::memory_order_relaxed);
  for (int i = 0; i + 1 < count; ++i) {
    helpers_[i]->orders.fetch_add(1, std::memory_order_release);
  }
  Wake();
  std::exception_ptr error;
  try {
    work(0);
  } catch (...) {
    error = std::current_exception();
  }
  for (uint32_t left = pending_.load(std::memory_order_acquire); left > 0;) left = WaitForChange(pending_, left);
  for (int i = 0; i + 1 < count; ++i) {
    const std::exception_ptr its = std::exchange(helpers_[i]->error, nullptr);
    if (error == nullptr) error = its;
  }
  if (error != nullptr) std::rethrow_exception(error);
}

void ThreadTeam::Serve(int number) {
  Helper& self = *helpers_[number];
  uint32_t served = 0;
  while (true) {
    WaitForChange(self.orders, served++);
    if (work_ == nullptr) return;
    try {
      (*work_)(number + 1);
    } catch (...) {
      self.error = std::current_exception();
    }
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) Wake();
  }
}

}  // namespace skein
