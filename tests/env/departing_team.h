// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "env/vector_env.h"

namespace skein {

// A team of two. Agent a leaves after `leaves[a]` steps; the episode terminates when both have left. obs of an agent is
// the count of steps, the global state {count, -count}, the metric the count; reward 1 for each agent that was alive.
class DepartingTeam final : public Env {
 public:
  explicit DepartingTeam(std::vector<int> leaves) : leaves_(std::move(leaves)) {
    spec_.id = "Departing";
    spec_.num_agents = 2;
    spec_.obs_size = 1;
    spec_.discrete = true;
    spec_.action_size = 3;
    spec_.global_state_size = 2;
    spec_.state_size = 1;
    spec_.episode_metrics = {"count"};
  }
  const EnvSpec& spec() const override { return spec_; }
  void Reset(RandomStream&) override { count_ = 0; }
  bool Step(const float*, float* reward) override {
    for (int a = 0; a < 2; ++a) reward[a] = count_ < leaves_[a] ? 1.0f : 0.0f;
    ++count_;
    return count_ >= leaves_[0] && count_ >= leaves_[1];
  }
  void Observe(float* obs) const override { obs[0] = obs[1] = static_cast<float>(count_); }
  void GlobalState(float* state) const override {
    state[0] = static_cast<float>(count_);
    state[1] = -state[0];
  }
  void Active(uint8_t* active) const override {
    for (int a = 0; a < 2; ++a) active[a] = count_ < leaves_[a];
  }
  void EpisodeMetrics(float* metrics) const override { *metrics = static_cast<float>(count_); }
  void SaveState(double* state) const override { *state = count_; }
  void LoadState(const double* state) override { count_ = static_cast<int>(*state); }

 private:
  EnvSpec spec_;
  const std::vector<int> leaves_;
  int count_ = 0;
};

// One environment for each of `teams`, at episode 0.
inline std::unique_ptr<VectorEnv> MakeDepartingTeams(const std::vector<std::vector<int>>& teams,
                                                     int max_episode_steps = 0) {
  std::vector<std::unique_ptr<Env>> envs;
  for (const std::vector<int>& leaves : teams) envs.push_back(std::make_unique<DepartingTeam>(leaves));
  auto vector_env = VectorEnv::Wrap(std::move(envs), {.max_episode_steps = max_episode_steps}).value();
  vector_env->ResetAll(0);
  return vector_env;
}

}  // namespace skein
