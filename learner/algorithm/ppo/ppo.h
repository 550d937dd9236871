// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "learner/algorithm/actor_critic_algorithm.h"
#include "learner/algorithm/ppo/ppo_objective.h"
#include "learner/algorithm/ppo/ppo_targets.h"

// Proximal policy optimisation, Schulman et al. 2017, with the usual refinements.   Batch -> Ppo::Update -> new weights
// docs/algorithms.md specifies the computation.
namespace skein {

// The schedule kl_adaptive: lr * 1.5 if kl < target / 2, lr / 1.5 if kl > 2 * target, else lr; within [1e-6, 1e-2].
double AdaptLearningRate(double lr, double kl, double kl_target);

// All ranks have equal state, to the bit. Up to rounding, it equals the state of a single rank that has the whole
// batch.
class Ppo final : public ActorCriticAlgorithm {
 public:
  // REQUIRES: defaults applied to `config` and validated. `collective` must outlive this; null: a single rank.
  Ppo(const v1::RunConfig& config, const ActorCriticOptions& network, uint64_t seed, Collective* collective = nullptr,
      torch::Device device = torch::kCPU);

  void SetSettings(const v1::RunConfig& config) override;

  // Returns stats over all ranks' data. Means over the gradient steps: policy_loss, value_loss, entropy, kl,
  // clip_fraction, grad_norm. At the start of the update: explained_variance, lr and, in mode async, vtrace_rho (mean
  // clipped importance weight, 1 when on-policy; rows that are not active count as 1). Counts: epochs, gradient_steps,
  // skipped_steps (not finite), out_of_memory.
  // Observations are normalised with the statistics before this batch (the behaviour policy's); the batch is added to
  // the statistics afterwards. `iteration` keys the minibatch order. With a memory, minibatches are whole sequences.
  absl::StatusOr<UpdateStats> Update(const Batch& batch, double progress, uint64_t iteration) override;

  std::vector<WatchRule> WatchRules() const override;
  // "advantage" of the last epoch, before normalisation.
  StateTensors SampleStats() const override;

 private:
  Ppo(const v1::RunConfig& config, std::shared_ptr<ActorCritic> network, std::shared_ptr<PpoObjective> objective,
      uint64_t seed, Collective* collective, torch::Device device);
  Ppo(const v1::RunConfig& config, std::shared_ptr<ActorCritic> network, uint64_t seed, Collective* collective,
      torch::Device device);

  const v1::PpoConfig& ppo() const { return config().ppo(); }
  // Stores one epoch's training targets, float32 [R], where the loss reads them: in `samples`, in the shape that `cut`
  // gives rows. `order`: the minibatches as rows.
  absl::Status SetTargets(const PpoTargets& targets, const MinibatchOrder& order,
                          const std::function<torch::Tensor(const torch::Tensor&)>& cut, Minibatch* samples);

  const uint64_t seed_;
  const std::shared_ptr<PpoObjective> objective_;
  torch::Tensor advantage_;  // See SampleStats().
};

}  // namespace skein
