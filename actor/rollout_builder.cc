// SPDX-License-Identifier: Apache-2.0
#include "actor/rollout_builder.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "trajectory/env_spec_info.h"

namespace skein {
namespace {

bool Varies(const Field& field) { return field.extent == Extent::kTruncation || field.extent == Extent::kEpisode; }

}  // namespace

RolloutBuilder::RolloutBuilder(const EnvSpec& spec, int64_t policy_state_size,
                               std::vector<std::string> algorithm_fields) {
  shape_.spec = MakeEnvSpecInfo(spec);
  shape_.policy_state_size = policy_state_size;
  shape_.algorithm_fields = std::move(algorithm_fields);
}

template <typename Value>
RolloutBuilder::Rows<Value> RolloutBuilder::Find(absl::string_view field) {
  const int i = schema_.Find(field);
  if (i < 0) return {};
  return {values<Value>(field), schema_.RowElements(schema_.fields[static_cast<size_t>(i)])};
}

void RolloutBuilder::Begin(const v1::Ticket& ticket, uint64_t policy_version, int env_state_size) {
  shape_.steps = ticket.steps();
  shape_.group_envs = ticket.group_envs();
  shape_.env_state_size = env_state_size;
  schema_ = MakeSchema(shape_);
  header_.Clear();
  header_.set_ticket_id(ticket.id());
  header_.set_policy_version(policy_version);
  header_.set_first_env(ticket.first_env());
  header_.set_group_envs(ticket.group_envs());
  header_.set_steps(ticket.steps());
  offsets_.clear();
  int64_t size = 0;
  for (const Field& field : schema_.fields) {
    if (Varies(field)) break;  // They come last.
    offsets_.push_back(static_cast<size_t>(size));
    size += AlignField(schema_.WireBytes(field, {}));
  }
  block_.clear();
  block_.reserve(static_cast<size_t>(size + size / 16));  // With room for a few episodes.
  block_.resize(static_cast<size_t>(size));
  varying_.assign(schema_.fields.size(), {});
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

template <typename Value>
void RolloutBuilder::AddVarying(absl::string_view field, const Value* rows, int64_t env) {
  const int i = schema_.Find(field);
  if (i < 0) return;
  const int64_t elements = schema_.RowElements(schema_.fields[static_cast<size_t>(i)]);
  varying_[static_cast<size_t>(i)].append(reinterpret_cast<const char*>(rows + env * elements),
                                          static_cast<size_t>(elements) * sizeof(Value));
}

void RolloutBuilder::Add(int64_t t, const VectorEnv::StepResult& result) {
  AddRow(result.reward, t, reward_);
  AddRow(result.terminated, t, terminated_);
  AddRow(result.truncated, t, truncated_);
  AddRow(result.active, t, active_);
  AddRow(result.agent_terminated, t, agent_terminated_);
  for (int64_t e = 0; e < shape_.group_envs; ++e) {
    if (!result.terminated[e] && !result.truncated[e]) continue;
    header_.set_episodes(header_.episodes() + 1);
    const auto episode_return = static_cast<float>(result.episode_return[e]);
    AddVarying("episode_return", &episode_return, 0);
    AddVarying("episode_length", result.episode_length, e);
    AddVarying("episode_metrics", result.episode_metrics, e);
    if (!result.truncated[e]) continue;
    header_.set_truncations(header_.truncations() + 1);
    AddVarying("final_obs", result.final_obs, e);
    AddVarying("final_state", result.final_state, e);
  }
}

Fragment RolloutBuilder::Finish(const v1::StageSeconds& stage_seconds) {
  *header_.mutable_stage_seconds() = stage_seconds;
  const FragmentCounts counts{.truncations = header_.truncations(), .episodes = header_.episodes()};
  for (size_t i = 0; i < schema_.fields.size(); ++i) {
    const Field& field = schema_.fields[i];
    v1::FieldHead& head = *header_.add_fields();
    head.set_name(field.name);
    head.set_dtype(field.dtype);
    head.set_bytes(static_cast<uint64_t>(schema_.WireBytes(field, counts)));
    if (!Varies(field)) continue;
    block_ += varying_[i];
    block_.resize(static_cast<size_t>(AlignField(static_cast<int64_t>(block_.size()))));
  }
  Fragment fragment;
  fragment.header = std::exchange(header_, {});
  fragment.block = std::make_shared<const std::string>(std::exchange(block_, {}));
  return fragment;
}

}  // namespace skein
