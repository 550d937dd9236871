// SPDX-License-Identifier: Apache-2.0
#include "actor/rollout_builder.h"

#include <algorithm>
#include <utility>

namespace skein {

template <typename Value>
Value* RolloutBuilder::NewTensor(const char* name, v1::DataType dtype, const std::vector<int64_t>& shape) {
  v1::Tensor* tensor = batch_.add_tensors();
  tensor->set_name(name);
  tensor->set_dtype(dtype);
  size_t bytes = sizeof(Value);
  for (int64_t extent : shape) {
    tensor->add_shape(extent);
    bytes *= static_cast<size_t>(extent);
  }
  tensor->mutable_data()->resize(bytes);
  return reinterpret_cast<Value*>(tensor->mutable_data()->data());
}

void RolloutBuilder::Begin(const v1::Ticket& ticket, uint64_t policy_version, int state_size) {
  batch_.Clear();
  batch_.set_ticket_id(ticket.id());
  batch_.set_policy_version(policy_version);
  batch_.set_first_env(ticket.first_env());
  batch_.set_num_envs(ticket.num_envs());
  batch_.set_steps(ticket.steps());
  T_ = ticket.steps();
  E_ = ticket.num_envs();
  A_ = spec_.num_agents;
  O_ = spec_.obs_size;
  D_ = spec_.discrete ? 1 : spec_.action_size;
  G_ = spec_.global_state_size;
  P_ = static_cast<int64_t>(spec_.episode_metrics.size());
  obs_ = NewTensor<float>("obs", v1::DATA_TYPE_FLOAT32, {T_ + 1, E_, A_, O_});
  if (spec_.discrete) {
    choice_ = NewTensor<int64_t>("action", v1::DATA_TYPE_INT64, {T_, E_, A_, 1});
  } else {
    action_ = NewTensor<float>("action", v1::DATA_TYPE_FLOAT32, {T_, E_, A_, D_});
  }
  log_prob_ = NewTensor<float>("log_prob", v1::DATA_TYPE_FLOAT32, {T_, E_, A_});
  reward_ = NewTensor<float>("reward", v1::DATA_TYPE_FLOAT32, {T_, E_, A_});
  terminated_ = NewTensor<uint8_t>("terminated", v1::DATA_TYPE_UINT8, {T_, E_});
  truncated_ = NewTensor<uint8_t>("truncated", v1::DATA_TYPE_UINT8, {T_, E_});
  if (G_ > 0) state_ = NewTensor<float>("state", v1::DATA_TYPE_FLOAT32, {T_ + 1, E_, G_});
  if (A_ > 1) {
    active_ = NewTensor<uint8_t>("active", v1::DATA_TYPE_UINT8, {T_, E_, A_});
    agent_terminated_ = NewTensor<uint8_t>("agent_terminated", v1::DATA_TYPE_UINT8, {T_, E_, A_});
  }
  env_state_ = NewTensor<double>("env_state", v1::DATA_TYPE_FLOAT64, {E_, state_size});
  policy_state_ = nullptr;
  if (policy_state_size_ > 0) {
    policy_state_ = NewTensor<float>("policy_state", v1::DATA_TYPE_FLOAT32, {E_, A_, policy_state_size_});
  }
  final_obs_.clear();
  final_state_.clear();
  episode_metrics_.clear();
  episode_return_.clear();
  episode_length_.clear();
}

float* RolloutBuilder::obs(int64_t t) { return obs_ + t * E_ * A_ * O_; }
float* RolloutBuilder::log_prob(int64_t t) { return log_prob_ + t * E_ * A_; }
float* RolloutBuilder::action(int64_t t) { return action_ + t * E_ * A_ * D_; }
int64_t* RolloutBuilder::choice(int64_t t) { return choice_ + t * E_ * A_; }
float* RolloutBuilder::state(int64_t t) { return state_ + t * E_ * G_; }
double* RolloutBuilder::env_state() { return env_state_; }
float* RolloutBuilder::policy_state() { return policy_state_; }

void RolloutBuilder::Add(int64_t t, const VectorEnv::StepResult& result) {
  std::copy_n(result.reward, E_ * A_, reward_ + t * E_ * A_);
  std::copy_n(result.terminated, E_, terminated_ + t * E_);
  std::copy_n(result.truncated, E_, truncated_ + t * E_);
  if (A_ > 1) {
    std::copy_n(result.active, E_ * A_, active_ + t * E_ * A_);
    std::copy_n(result.agent_terminated, E_ * A_, agent_terminated_ + t * E_ * A_);
  }
  for (int64_t e = 0; e < E_; ++e) {
    if (!result.terminated[e] && !result.truncated[e]) continue;
    episode_return_.push_back(static_cast<float>(result.episode_return[e]));
    episode_length_.push_back(result.episode_length[e]);
    const float* const metrics = result.episode_metrics + e * P_;
    episode_metrics_.insert(episode_metrics_.end(), metrics, metrics + P_);
    if (result.truncated[e]) {
      const float* const row = result.final_obs + e * A_ * O_;
      final_obs_.insert(final_obs_.end(), row, row + A_ * O_);
      const float* const state = result.final_state + e * G_;
      final_state_.insert(final_state_.end(), state, state + G_);
    }
  }
}

v1::TrajectoryBatch RolloutBuilder::Finish(const v1::StageSeconds& stage_seconds) {
  *batch_.mutable_stage_seconds() = stage_seconds;
  const int64_t truncations = static_cast<int64_t>(final_obs_.size()) / (A_ * O_);
  const int64_t episodes = static_cast<int64_t>(episode_return_.size());
  std::copy(final_obs_.begin(), final_obs_.end(),
            NewTensor<float>("final_obs", v1::DATA_TYPE_FLOAT32, {truncations, A_, O_}));
  if (G_ > 0) {
    std::copy(final_state_.begin(), final_state_.end(),
              NewTensor<float>("final_state", v1::DATA_TYPE_FLOAT32, {truncations, G_}));
  }
  if (P_ > 0) {
    std::copy(episode_metrics_.begin(), episode_metrics_.end(),
              NewTensor<float>("episode_metrics", v1::DATA_TYPE_FLOAT32, {episodes, P_}));
  }
  std::copy(episode_return_.begin(), episode_return_.end(),
            NewTensor<float>("episode_return", v1::DATA_TYPE_FLOAT32, {episodes}));
  std::copy(episode_length_.begin(), episode_length_.end(),
            NewTensor<int64_t>("episode_length", v1::DATA_TYPE_INT64, {episodes}));
  return std::exchange(batch_, {});
}

}  // namespace skein
