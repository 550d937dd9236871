// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "env/env.h"

namespace skein {

// Steps nothing; keeps the actions that it got, a number for each environment.
class KeepingBatch final : public EnvBatch {
 public:
  explicit KeepingBatch(size_t envs) : envs_(envs) {}
  void Step(const float* action, const uint32_t*) override { got.assign(action, action + envs_); }
  std::vector<float> got;

 private:
  const size_t envs_;
};

// An environment that a call of `batch`, which must outlive it, steps together with the others. Actions: [1] in 0
// .. 10.
class BatchedEnv final : public Env {
 public:
  explicit BatchedEnv(EnvBatch* batch) : batch_(batch) {}
  const EnvSpec& spec() const override {
    static const EnvSpec spec = {
        .id = "Batched", .obs_size = 1, .action_size = 1, .action_low = {0}, .action_high = {10}, .state_size = 1};
    return spec;
  }
  EnvBatch* batch() override { return batch_; }
  void Reset(RandomStream&) override {}
  bool Step(const float*, float* reward) override { return *reward = 0, false; }
  void Observe(float* obs) const override { *obs = 1; }

 private:
  EnvBatch* const batch_;
};

}  // namespace skein
