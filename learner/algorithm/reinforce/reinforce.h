// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learner/algorithm/actor_critic_algorithm.h"
#include "learner/algorithm/actor_critic_rules.h"
#include "learner/optimize/loss.h"

// REINFORCE with a value function as baseline: its loss, and the algorithm.
namespace skein {

// Williams 1992, "Simple statistical gradient-following algorithms for connectionist reinforcement learning", with the
// value function as baseline: -mean(log pi(a|s) A) + value_coefficient mean((V - target)^2) - entropy_coefficient H.
class ReinforceLoss final : public Loss {
 public:
  // `network` must outlive this.
  ReinforceLoss(const v1::ReinforceConfig& config, const ActorCritic& network, torch::ScalarType precision)
      : config_(config), network_(network), precision_(precision) {}

  std::vector<std::string> stats() const override { return {"policy_loss", "value_loss", "entropy"}; }
  Terms Compute(const Minibatch& samples, const std::vector<torch::Tensor>& scheduled) const override;

 private:
  const v1::ReinforceConfig config_;
  const ActorCritic& network_;
  const torch::ScalarType precision_;
};

// One pass over each iteration's data with ReinforceLoss. The advantage is the discounted return minus the value
// function's estimate, normalised over each minibatch. Where a fragment's end or a time limit cuts an episode, the
// value function estimates the rest of the return. docs/algorithms.md uses it to show how an algorithm is added.
class Reinforce final : public ActorCriticAlgorithm {
 public:
  // REQUIRES: defaults applied to `config` and validated. `collective` must outlive this; null: a single rank.
  Reinforce(const v1::RunConfig& config, const ActorCriticOptions& network, Collective* collective,
            torch::Device device);

  void SetSettings(const v1::RunConfig& config) override;
  absl::StatusOr<UpdateStats> Update(const Batch& batch, double progress, uint64_t iteration) override;
  std::vector<WatchRule> WatchRules() const override { return ActorCriticRules(network().options()); }

 private:
  Reinforce(const v1::RunConfig& config, std::shared_ptr<ActorCritic> network, Collective* collective,
            torch::Device device);
};

}  // namespace skein
