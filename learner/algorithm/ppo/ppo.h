// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>

#include "learner/algorithm/actor_critic_algorithm.h"
#include "learner/algorithm/ppo/ppo_objective.h"
#include "learner/algorithm/ppo/ppo_targets.h"

// Proximal policy optimisation, Schulman et al. 2017, with the usual refinements.   Batch -> Ppo::Update -> new weights
// docs/algorithms.md says exactly what is computed.
namespace skein {

// The schedule kl_adaptive: lr times or over 1.5 when kl is under target / 2 or over 2 target; within [1e-6, 1e-2].
double AdaptLearningRate(double lr, double kl, double kl_target);

// Of several ranks, each ends up with the same state as the others, to the bit, and up to rounding with that of a
// single rank which has the whole batch.
class Ppo final : public ActorCriticAlgorithm {
 public:
  // REQUIRES: defaults applied to `config` and validated. `collective` must outlive this; null: a single rank.
  Ppo(const v1::RunConfig& config, const ActorCriticOptions& network, uint64_t seed, Collective* collective = nullptr,
      torch::Device device = torch::kCPU);

  // Stats of all ranks' data. Averaged over its gradient steps: policy_loss, value_loss, entropy, kl, clip_fraction,
  // grad_norm. As of its beginning: explained_variance, lr and, in mode async, vtrace_rho (mean clipped importance
  // weight, 1 when on-policy; agents that took no part count as 1). Counted: epochs, gradient_steps, skipped_steps
  // (not finite), out_of_memory.
  // Observations are normalised with the statistics before this batch (those the behaviour policy had); the
  // statistics take the batch in afterwards. `iteration` keys the minibatch order.
  absl::StatusOr<UpdateStats> Update(const Batch& batch, double progress, uint64_t iteration) override;

  // "advantage", as the last epoch had it, before it was normalised.
  StateTensors SampleStats() const override;

 private:
  Ppo(const v1::RunConfig& config, std::shared_ptr<ActorCritic> network, std::shared_ptr<PpoObjective> objective,
      uint64_t seed, Collective* collective, torch::Device device);
  Ppo(const v1::RunConfig& config, std::shared_ptr<ActorCritic> network, uint64_t seed, Collective* collective,
      torch::Device device);

  const v1::PpoConfig& ppo() const { return config().ppo(); }
  // Where the loss finds them: what one epoch's samples are trained on.
  absl::Status SetTargets(const PpoTargets& targets, const MinibatchOrder& order, TrainingData* data);

  const uint64_t seed_;
  const std::shared_ptr<PpoObjective> objective_;
  torch::Tensor advantage_;  // See SampleStats().
};

}  // namespace skein
