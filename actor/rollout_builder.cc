// SPDX-License-Identifier: Apache-2.0
#include "actor/rollout_builder.h"

#include <algorithm>
#include <utility>

#include "trajectory/env_spec_info.h"

namespace skein {

RolloutBuilder::RolloutBuilder(const EnvSpec& spec, int64_t policy_state_size,
                               std::vector<std::string> algorithm_fields) {
  shape_.spec = MakeEnvSpecInfo(spec);
  shape_.policy_state_size = policy_state_size;
  shape_.algorithm_fields = std::move(algorithm_fields);
}

template <typename Value>
RolloutBuilder::Rows<Value> RolloutBuilder::Find(absl::string_view field) {
  const int i = schema().Find(field);
  if (i < 0) return {};
  return {values<Value>(field), schema().RowElements(schema().fields[static_cast<size_t>(i)])};
}

void RolloutBuilder::Begin(const v1::Ticket& ticket, uint64_t policy_version, int env_state_size) {
  shape_.steps = ticket.steps();
  shape_.group_envs = ticket.group_envs();
  shape_.env_state_size = env_state_size;
  fragment_.Begin(MakeSchema(shape_), ticket, policy_version);
  obs_ = Find<float>("obs");
  action_ = shape_.spec.discrete() ? Rows<float>() : Find<float>("action");
  choice_ = shape_.spec.discrete() ? Find<int64_t>("action") : Rows<int64_t>();
  log_prob_ = Find<float>("log_prob");
  reward_ = Find<float>("reward");
  state_ = Find<float>("state");
  terminated_ = Find<uint8_t>("terminated");
  truncated_ = Find<uint8_t>("truncated");
  active_ = Find<uint8_t>("active");
  agent_terminated_ = Find<uint8_t>("agent_terminated");
}

template <typename Value>
void RolloutBuilder::AddRow(const Value* from, int64_t t, const Rows<Value>& rows) {
  if (rows.first != nullptr) std::copy_n(from, rows.elements, Row(rows, t));
}

void RolloutBuilder::Add(int64_t t, const VectorEnv::StepResult& result) {
  AddRow(result.reward, t, reward_);
  AddRow(result.terminated, t, terminated_);
  AddRow(result.truncated, t, truncated_);
  AddRow(result.active, t, active_);
  AddRow(result.agent_terminated, t, agent_terminated_);
  v1::FragmentHeader& header = fragment_.header();
  for (int64_t e = 0; e < shape_.group_envs; ++e) {
    if (!result.terminated[e] && !result.truncated[e]) continue;
    if (result.diverged[e] != 0) {
      header.set_failed_episodes(header.failed_episodes() + 1);
    } else {
      header.set_episodes(header.episodes() + 1);
      const auto episode_return = static_cast<float>(result.episode_return[e]);
      fragment_.Append("episode_return", &episode_return, 0);
      fragment_.Append("episode_length", result.episode_length, e);
      fragment_.Append("episode_metrics", result.episode_metrics, e);
    }
    if (!result.truncated[e]) continue;
    header.set_truncations(header.truncations() + 1);
    fragment_.Append("final_obs", result.final_obs, e);
    fragment_.Append("final_state", result.final_state, e);
  }
}

Fragment RolloutBuilder::Finish(const v1::StageSeconds& stage_seconds) {
  *fragment_.header().mutable_stage_seconds() = stage_seconds;
  return fragment_.Finish();
}

}  // namespace skein
