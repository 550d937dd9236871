// SPDX-License-Identifier: Apache-2.0
#include "base/process/steady_wait.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace skein {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// A mutex that is held when its wait is over is tried again after this.
constexpr std::chrono::milliseconds kRetry{1};
// Longer waits are as good as endless, and a moment so far ahead can still be counted.
constexpr absl::Duration kLongest = absl::Hours(24 * 365);

// Says to waits when they are over.   AwaitFor: Add -> Mutex::Await -> Remove;  one thread: at each deadline, `over`
// std::mutex and std::condition_variable, as these can wait on the steady clock. `mu_` is taken while users' mutexes
// are held; the other way round those are only tried.
class SteadyAlarm {
 public:
  struct Wait {
    absl::Mutex* mu = nullptr;
    SteadyTime at;
    bool over = false;  // Guarded by *mu.
  };

  // Never destroyed: threads may wait until the process ends.
  static SteadyAlarm& Get() {
    static SteadyAlarm* const alarm = new SteadyAlarm;
    return *alarm;
  }

  void Add(Wait* wait) {
    const std::lock_guard<std::mutex> lock(mu_);
    waits_.insert({wait->at, wait});
    if (waits_.begin()->second == wait) changed_.notify_one();
  }

  // After this nothing refers to `wait`.
  void Remove(Wait* wait) {
    const std::lock_guard<std::mutex> lock(mu_);
    waits_.erase({wait->at, wait});
  }

 private:
  SteadyAlarm() {
    std::thread([this] { Run(); }).detach();
  }

  [[noreturn]] void Run() {
    std::unique_lock<std::mutex> lock(mu_);
    while (true) {
      if (waits_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const auto [at, wait] = *waits_.begin();
      const SteadyTime now = std::chrono::steady_clock::now();
      if (now < at) {
        changed_.wait_until(lock, at);
        continue;
      }
      waits_.erase(waits_.begin());
      if (wait->mu->TryLock()) {
        wait->over = true;
        wait->mu->Unlock();
      } else {
        wait->at = now + kRetry;
        waits_.insert({wait->at, wait});
      }
    }
  }

  std::mutex mu_;
  std::condition_variable changed_;
  std::set<std::pair<SteadyTime, Wait*>> waits_;
};

}  // namespace

bool AwaitFor(absl::Mutex* mu, const absl::Condition& condition, absl::Duration timeout) {
  if (condition.Eval()) return true;
  if (timeout <= absl::ZeroDuration()) return false;
  SteadyAlarm::Wait wait;
  wait.mu = mu;
  wait.at = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(std::min(timeout, kLongest));
  SteadyAlarm::Get().Add(&wait);
  const auto done = [&] { return wait.over || condition.Eval(); };
  mu->Await(absl::Condition(&done));
  SteadyAlarm::Get().Remove(&wait);
  return condition.Eval();
}

}  // namespace skein
