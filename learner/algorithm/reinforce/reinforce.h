// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learner/algorithm/actor_critic_algorithm.h"
#include "learner/optimize/loss.h"

namespace skein {

// Williams 1992, "Simple statistical gradient-following algorithms for connectionist reinforcement learning", with the
// value function as baseline: -mean(log pi(a|s) A) + value_coefficient mean((V - target)^2) - entropy_coefficient H.
class ReinforceLoss final : public Loss {
 public:
  // `network` must outlive it.
  ReinforceLoss(const v1::ReinforceConfig& config, const ActorCritic& network, torch::ScalarType precision)
      : config_(config), network_(network), precision_(precision) {}

  std::vector<std::string> stats() const override { return {"policy_loss", "value_loss", "entropy"}; }
  Terms Compute(const Minibatch& samples, const std::vector<torch::Tensor>& scheduled) const override;

 private:
  const v1::ReinforceConfig config_;
  const ActorCritic& network_;
  const torch::ScalarType precision_;
};

// One pass over each iteration's data with ReinforceLoss. An advantage is the return that followed less the value
// function's guess, normalised over each minibatch; where a fragment or a time limit cuts an episode, the value
// function says what would have followed. The example of how an algorithm is added: docs/algorithms.md.
class Reinforce final : public ActorCriticAlgorithm {
 public:
  // REQUIRES: defaults applied to `config` and validated. `collective` must outlive this; null: a single rank.
  Reinforce(const v1::RunConfig& config, const ActorCriticOptions& network, Collective* collective,
            torch::Device device);

  absl::StatusOr<UpdateStats> Update(const Batch& batch, double progress, uint64_t iteration) override;

 private:
  Reinforce(const v1::RunConfig& config, std::shared_ptr<ActorCritic> network, Collective* collective,
            torch::Device device);
};

}  // namespace skein
