// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "env/vector_env.h"

namespace skein {

struct CountingEnvOptions {
  int num_agents = 1;
  int action_size = 2;
  bool discrete = false;
  int end = 1000000;     // Terminates after this many steps.
  int breaks = 1000000;  // Fails in this step.
};

// An environment that counts its steps. obs of agent a is {count, a}, its reward 10 count + a.
class CountingEnv final : public Env {
 public:
  explicit CountingEnv(const CountingEnvOptions& options) : end_(options.end), breaks_(options.breaks) {
    spec_.id = "Counting";
    spec_.num_agents = options.num_agents;
    spec_.obs_size = 2;
    spec_.discrete = options.discrete;
    spec_.action_size = options.action_size;
    spec_.state_size = 1;
    if (!options.discrete) {
      spec_.action_low.assign(options.action_size, -100.0f);
      spec_.action_high.assign(options.action_size, 100.0f);
    }
  }
  const EnvSpec& spec() const override { return spec_; }
  void Reset(RandomStream&) override { count_ = 0; }
  bool Step(const float*, float* reward) override {
    ++count_;
    for (int a = 0; a < spec_.num_agents; ++a) reward[a] = static_cast<float>(10 * count_ + a);
    if (count_ == breaks_) reward[0] = std::numeric_limits<float>::quiet_NaN();
    return count_ == end_;
  }
  void Observe(float* obs) const override {
    for (int a = 0; a < spec_.num_agents; ++a) {
      obs[2 * a] = static_cast<float>(count_);
      obs[2 * a + 1] = static_cast<float>(a);
    }
  }
  void SaveState(double* state) const override { *state = count_; }
  void LoadState(const double* state) override { count_ = static_cast<int>(*state); }

 private:
  EnvSpec spec_;
  int end_, breaks_, count_ = 0;
};

// `size` of them, at episode 0 and beginning with environment `first_env`.
inline std::unique_ptr<VectorEnv> MakeCountingEnvs(const CountingEnvOptions& options, int size, uint64_t first_env = 0,
                                                   int max_episode_steps = 0) {
  std::vector<std::unique_ptr<Env>> envs;
  for (int e = 0; e < size; ++e) envs.push_back(std::make_unique<CountingEnv>(options));
  auto vector_env = VectorEnv::Wrap(std::move(envs), {.max_episode_steps = max_episode_steps}).value();
  vector_env->ResetAll(first_env);
  return vector_env;
}

}  // namespace skein
