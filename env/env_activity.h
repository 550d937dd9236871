// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace skein {

// Where a VectorEnv is, for whoever watches that its environments do not hang.   VectorEnv -> EnvActivity -> watchdog
// One thread writes, any other reads. Costs a few stores a step and no clock.
class EnvActivity {
 public:
  struct Place {
    uint64_t entries = 0;  // Calls into environments so far: while one is under way this stays as it is.
    bool inside = false;   // One is under way, of:
    uint64_t env_index = 0, episode = 0;
    uint32_t step = 0;  // Of the episode, from 1; 0 = its beginning, or where a saved state is taken up.
  };

  void Enter(uint64_t env_index, uint64_t episode, uint32_t step) {
    env_index_.store(env_index, std::memory_order_relaxed);
    episode_.store(episode, std::memory_order_relaxed);
    step_.store(step, std::memory_order_relaxed);
    mark_.store(2 * ++entries_ + 1, std::memory_order_release);
  }
  void Leave() { mark_.store(2 * entries_, std::memory_order_release); }

  // Of one moment if `entries` is the same when read again.
  Place Read() const {
    const uint64_t mark = mark_.load(std::memory_order_acquire);
    return {mark / 2, mark % 2 == 1, env_index_.load(std::memory_order_relaxed),
            episode_.load(std::memory_order_relaxed), step_.load(std::memory_order_relaxed)};
  }

 private:
  uint64_t entries_ = 0;  // Of the writing thread.
  std::atomic<uint64_t> mark_{0}, env_index_{0}, episode_{0};
  std::atomic<uint32_t> step_{0};
};

}  // namespace skein
