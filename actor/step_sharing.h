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

// Runners of one actor that have no ticket step environments of those that have: where all wait for the slowest, nobody
// is idle meanwhile, and trajectories are the same.   a runner at work -> Offer -> Help <- a runner without a ticket
// Thread-safe.
class StepSharing {
 public:
  // Lets others help with the Steps of `env` for as long as this lives; the thread that makes them has it. Both must
  // outlive it. The destructor waits for an environment that is being stepped.
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
    int places_;       // So many more could help,
    int helpers_ = 0;  // and so many do.
    bool withdrawn_ = false;
  };

  // `on_offer` is called whenever wants_help() has become true, by whoever made it so.
  explicit StepSharing(std::function<void()> on_offer) : on_offer_(std::move(on_offer)) {}

  // Whether Help would have something to do.
  bool wants_help() const { return places_ > 0; }
  // Helps with the offer that has the fewest helpers until it is withdrawn or `leave` says so. Returns how long
  // environments were stepped; nullopt: there is no offer that has more environments than threads already.
  std::optional<absl::Duration> Help(EnvActivity* activity, const std::function<bool()>& leave);

 private:
  const std::function<void()> on_offer_;
  std::atomic<int> places_{0};  // So many more could help. Changed under the mutex.
  absl::Mutex mu_;
  std::list<Offer*> offers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
