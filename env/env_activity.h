// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace skein {

// Records which environment call is running, to detect one that hangs.   VectorEnv -> EnvActivity -> watchdog
// One thread writes, any other thread may read. Costs a few stores per step and reads no clock.
class EnvActivity {
 public:
  struct Place {
    uint64_t entries = 0;  // Calls into environments so far; constant while a call is running.
    bool inside = false;   // Whether a call is running. The fields below describe it.
    uint64_t env_index = 0, episode = 0;
    uint32_t step = 0;  // Step of the episode, from 1; 0 = a reset. While a saved state is loaded: its step.
  };

  void Enter(uint64_t env_index, uint64_t episode, uint32_t step) {
    env_index_.store(env_index, std::memory_order_relaxed);
    episode_.store(episode, std::memory_order_relaxed);
    step_.store(step, std::memory_order_relaxed);
    mark_.store(2 * ++entries_ + 1, std::memory_order_release);
  }
  void Leave() { mark_.store(2 * entries_, std::memory_order_release); }

  // The fields are consistent with each other if a second Read returns the same `entries`.
  Place Read() const {
    const uint64_t mark = mark_.load(std::memory_order_acquire);
    return {mark / 2, mark % 2 == 1, env_index_.load(std::memory_order_relaxed),
            episode_.load(std::memory_order_relaxed), step_.load(std::memory_order_relaxed)};
  }

 private:
  uint64_t entries_ = 0;  // Used by the writing thread only.
  std::atomic<uint64_t> mark_{0}, env_index_{0}, episode_{0};
  std::atomic<uint32_t> step_{0};
};

}  // namespace skein
