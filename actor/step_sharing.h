// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "env/env_activity.h"
#include "env/vector_env.h"

namespace skein {

// Lets runners of one actor that have no ticket step environments of runners that have one, so that none is idle while
// the slowest runner works. Trajectories are the same.   a busy runner -> Offer -> Help <- a runner without a ticket
// Thread-safe.
class StepSharing {
 public:
  // Lets other threads help with the Steps of `env` during the lifetime of this object, which belongs to the thread
  // that calls Step. Both pointers must outlive it. The destructor waits for an environment that is being stepped.
  class Offer {
   public:
    Offer(StepSharing* sharing, VectorEnv* env);
    ~Offer();
    Offer(const Offer&) = delete;
    Offer& operator=(const Offer&) = delete;

   private:
    friend class StepSharing;
    StepSharing* const sharing_;
    VectorEnv* const env_;
    // Under the mutex of sharing_:
    int places_;       // How many more threads could help,
    int helpers_ = 0;  // and how many do.
    bool withdrawn_ = false;
  };

  // `on_offer` is called whenever wants_help() has become true, on the thread that made it true.
  explicit StepSharing(std::function<void()> on_offer) : on_offer_(std::move(on_offer)) {}

  // Whether an offer has room for another helper.
  bool wants_help() const { return places_ > 0; }
  // Helps with the offer that has the fewest helpers until it is withdrawn or `leave` returns true. Returns the time
  // spent stepping; nullopt: no offer has more environments than threads.
  std::optional<absl::Duration> Help(EnvActivity* activity, const std::function<bool()>& leave);

 private:
  const std::function<void()> on_offer_;
  std::atomic<int> places_{0};  // How many more threads could help. Changed under the mutex.
  absl::Mutex mu_;
  std::list<Offer*> offers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
