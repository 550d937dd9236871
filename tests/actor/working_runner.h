// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actor/runner.h"
#include "actor/runner_env.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "env/registry.h"
#include "gtest/gtest.h"
#include "tests/policy/make_policy.h"
#include "trajectory/frame.h"
#include "trajectory/schema.h"

namespace skein {

inline constexpr uint32_t kE = 3;

// The bytes of a field as they travel; none if there is no such field.
inline std::string FieldBytes(const Fragment& fragment, const std::string& name) {
  size_t offset = 0;
  for (const v1::FieldHead& field : fragment.header.fields()) {
    if (field.name() == name) return fragment.block->substr(offset, field.bytes());
    offset += static_cast<size_t>(AlignField(static_cast<int64_t>(field.bytes())));
  }
  return {};
}

template <typename Value>
std::vector<Value> Values(const Fragment& fragment, const std::string& name) {
  const std::string bytes = FieldBytes(fragment, name);
  std::vector<Value> values(bytes.size() / sizeof(Value));
  std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(values.data()));
  return values;
}

// Everything that a learner trains on.
inline std::string AllFields(const Fragment& fragment) {
  std::string bytes = *fragment.block;
  for (const v1::FieldHead& field : fragment.header.fields()) bytes += field.SerializeAsString();
  return bytes;
}

// A ticket that goes on where this fragment ended.
inline void Continue(const Fragment& fragment, v1::Ticket* ticket) {
  ticket->mutable_env_state()->set_dtype(v1::DATA_TYPE_FLOAT64);
  ticket->mutable_env_state()->set_data(FieldBytes(fragment, "env_state"));
  const std::string state = FieldBytes(fragment, "policy_state");
  if (state.empty()) return;
  ticket->mutable_policy_state()->set_dtype(v1::DATA_TYPE_FLOAT32);
  ticket->mutable_policy_state()->set_data(state);
}

// Runners of one actor at work on threads of their own, with policy 4 at hand.
class WorkingRunner {
 public:
  explicit WorkingRunner(const std::string& env_id, uint32_t max_episode_steps = 0,
                         const v1::TransportConfig& transport = {}, int runners = 1, const v1::ModelConfig& model = {},
                         v1::RunConfig config = {})
      : config_(std::move(config)),
        metrics_(&registry_, 1),
        rebuilds_(
            2, [this](uint32_t phase) { return MakeRunnerEnv(config_, phase); }, &metrics_) {
    *config_.mutable_transport() = transport;  // Of `config`, only what is not named here is taken.
    *config_.mutable_model() = model;
    ApplyDefaults(&config_);
    config_.mutable_env()->set_id(env_id);
    config_.mutable_env()->set_max_episode_steps(max_episode_steps);
    config_.mutable_rollout()->set_envs_per_runner(kE);
    config_.mutable_rollout()->set_num_envs(4 * kE);
    spec_ = MakeEnv(env_id).value()->spec();
    policy_spec_ = MakePolicySpec(config_.model(), spec_);
    outbox_.BeginConnection("ada", 1);
    outbox_.BeginStream(1, 0);
    policies_.BeginStream(1);
    for (int i = 0; i < runners; ++i) {
      runners_.push_back(
          Runner::Make(config_, &rebuilds_, &held_envs_, &outbox_, &policies_, &sharing_, &metrics_, &stop_).value());
    }
    status_.resize(runners);
    for (int i = 0; i < runners; ++i) threads_.emplace_back([this, i] { status_[i] = runners_[i]->Run(); });
  }
  ~WorkingRunner() {
    if (!threads_.empty()) End().IgnoreError();
  }

  void PutPolicy(uint64_t version = 4) { policies_.Put(1, Snapshot(version)); }
  std::shared_ptr<const Policy> Snapshot(uint64_t version) const {
    return RandomPolicy(version, policy_spec_, 17, /*bound=*/0.3);
  }
  v1::Ticket MakeTicket(uint32_t first_env, uint32_t steps) {
    v1::Ticket ticket;
    ticket.set_id(++tickets_);
    ticket.set_policy_version(4);
    ticket.set_first_env(first_env);
    ticket.set_group_envs(kE);
    ticket.set_steps(steps);
    return ticket;
  }
  // Hands out a ticket and waits for its fragment.
  Fragment Serve(const v1::Ticket& ticket) {
    outbox_.AddTicket(1, ticket);
    const auto fragment = outbox_.NextToSend(1);
    EXPECT_EQ(fragment->header.ticket_id(), ticket.id());
    return *fragment;
  }
  absl::Status End() {
    stop_ = true;
    outbox_.Stop();
    policies_.Stop();
    return Join();
  }
  // What Run returns by itself.
  absl::Status Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    for (const absl::Status& status : status_) {
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  FragmentShape Shape(uint32_t steps) const {
    FragmentShape shape;
    shape.steps = steps;
    shape.group_envs = kE;
    shape.policy_state_size = policy_spec_.state_size();
    shape.env_state_size = VectorEnv::Make({.env_id = spec_.id, .size = 1}).value()->state_size();
    shape.spec.set_obs_size(spec_.obs_size);
    shape.spec.set_action_size(spec_.action_size);
    shape.spec.set_discrete(spec_.discrete);
    shape.spec.set_num_agents(spec_.num_agents);
    shape.algorithm_fields = AlgorithmFields(config_);
    return shape;
  }

  Outbox& outbox() { return outbox_; }
  ActorMetrics& metrics() { return metrics_; }
  const Runner& runner(int i) const { return *runners_.at(i); }
  std::atomic<bool>& stop() { return stop_; }

 private:
  v1::RunConfig config_;
  EnvSpec spec_;
  PolicySpec policy_spec_;
  prometheus::Registry registry_;
  ActorMetrics metrics_;
  EnvRebuilds rebuilds_;
  HeldEnvs held_envs_;
  Outbox outbox_;
  PolicyStore policies_;
  StepSharing sharing_{[this] { outbox_.Nudge(); }};
  std::atomic<bool> stop_{false};
  uint64_t tickets_ = 0;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<absl::Status> status_;
  std::vector<std::thread> threads_;
};

}  // namespace skein
