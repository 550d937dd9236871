// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "env/env.h"
#include "env/vector_env.h"
#include "skein/v1/trajectory.pb.h"

namespace skein {

// Writes the steps of one fragment straight into the tensors of the message that will be sent, so that nothing is
// copied a second time.   VectorEnv step -> Add -> Finish -> TrajectoryBatch
// T steps, E environments, A agents; layouts as in trajectory.proto. Not thread-safe: one per runner.
class RolloutBuilder {
 public:
  // `policy_state_size`: floats that the policy remembers for one agent.
  explicit RolloutBuilder(const EnvSpec& spec, int64_t policy_state_size = 0)
      : spec_(spec), policy_state_size_(policy_state_size) {}

  // Starts a fragment. Pointers handed out below are valid until Finish.
  void Begin(const v1::Ticket& ticket, uint64_t policy_version, int state_size);
  float* obs(int64_t t);       // [E, A, O] of row t, 0 <= t <= T; the caller writes it.
  float* log_prob(int64_t t);  // [E, A]
  float* action(int64_t t);    // [E, A, D]; continuous only
  int64_t* choice(int64_t t);  // [E, A]; discrete only
  float* state(int64_t t);     // [E, G] of row t, 0 <= t <= T; the caller writes it; nothing to write if G = 0.
  // What the environments did in step t.
  void Add(int64_t t, const VectorEnv::StepResult& result);
  double* env_state();    // [E, S], to be filled after the last step.
  float* policy_state();  // [E, A, policy_state_size], likewise; null without a memory.
  v1::TrajectoryBatch Finish(const v1::StageSeconds& stage_seconds);

 private:
  template <typename Value>
  Value* NewTensor(const char* name, v1::DataType dtype, const std::vector<int64_t>& shape);

  const EnvSpec spec_;
  const int64_t policy_state_size_;
  v1::TrajectoryBatch batch_;
  int64_t T_ = 0, E_ = 0, A_ = 0, O_ = 0, D_ = 0, G_ = 0, P_ = 0;
  float *obs_ = nullptr, *action_ = nullptr, *log_prob_ = nullptr, *reward_ = nullptr;
  float* state_ = nullptr;  // Null if G = 0.
  int64_t* choice_ = nullptr;
  uint8_t *terminated_ = nullptr, *truncated_ = nullptr;
  uint8_t *active_ = nullptr, *agent_terminated_ = nullptr;  // Null if A = 1.
  double* env_state_ = nullptr;
  float* policy_state_ = nullptr;  // Null without a memory.
  std::vector<float> final_obs_, final_state_, episode_return_, episode_metrics_;
  std::vector<int64_t> episode_length_;
};

}  // namespace skein
