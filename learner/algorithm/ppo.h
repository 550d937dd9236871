// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "learner/algorithm/flat_adam.h"
#include "learner/algorithm/fused_gradient.h"
#include "learner/algorithm/ppo_loss.h"
#include "model/actor_critic.h"
#include "model/normalizer.h"
#include "skein/v1/config.pb.h"

// Proximal policy optimisation, Schulman et al. 2017, with the usual refinements.   Batch -> Ppo::Update -> new weights
// docs/algorithms.md says exactly what is computed.
namespace skein {

// One iteration's data in env-index order, time-major, raw observations. N environments, A agents, flattened to M = N*A
// columns.
struct Batch {
  torch::Tensor obs;          // float32 [T+1, M, O]
  torch::Tensor action;       // float32 [T, M, D], or int64 [T, M] if discrete
  torch::Tensor log_prob;     // float32 [T, M], of the behaviour policy
  torch::Tensor reward;       // float32 [T, M]
  torch::Tensor terminated;   // bool [T, M]
  torch::Tensor truncated;    // bool [T, M]
  torch::Tensor final_obs;    // float32 [K, O], true last observations of truncated episodes
  torch::Tensor final_index;  // int64 [K], position t * M + m of each
};

// The schedule kl_adaptive: lr times or over 1.5 when kl is under target / 2 or over 2 target; within [1e-6, 1e-2].
double AdaptLearningRate(double lr, double kl, double kl_target);

// Learning state of one run: networks, optimizer, normalisers. Not thread-safe.
class Ppo {
 public:
  // REQUIRES: defaults applied to `config` and validated.
  Ppo(const v1::RunConfig& config, const ActorCriticOptions& network, uint64_t seed);

  // Figures of one update. Averaged over its gradient steps: policy_loss, value_loss, entropy, kl, clip_fraction,
  // grad_norm. As of its beginning: explained_variance, lr and, in mode async, vtrace_rho (mean clipped importance
  // weight, 1 when on-policy). Counted: epochs, gradient_steps, skipped_steps.
  using Figures = std::map<std::string, double>;

  // Trains on one iteration's data. progress in [0, 1] drives linear schedules. `iteration` keys the minibatch order.
  // Observations are normalised with the statistics before this batch (those the behaviour policy had); the
  // statistics take the batch in afterwards. Not finite: the minibatch is skipped and counted as figure skipped_steps.
  Figures Update(const Batch& batch, double progress, uint64_t iteration);

  const ActorCritic& network() const { return *network_; }
  ObsScale obs_scale() const;

  // Everything that learning depends on, for checkpoints; names are stable. Tensors are copies.
  std::vector<std::pair<std::string, torch::Tensor>> ModelState() const;      // weights and normalisers
  std::vector<std::pair<std::string, torch::Tensor>> OptimizerState() const;  // moments, step counts, learning rate
  // InvalidArgument: names or shapes differ from this run's (names the first that does); then nothing has changed.
  absl::Status Restore(const std::vector<std::pair<std::string, torch::Tensor>>& model,
                       const std::vector<std::pair<std::string, torch::Tensor>>& optimizer);

 private:
  // Batch with observations normalised and rows flattened: R = T * M.
  struct Rows {
    torch::Tensor obs;        // [R + M, O]
    torch::Tensor final_obs;  // [K, O]
  };
  // Sums over the gradient steps that were taken.
  struct Totals {
    LossValues loss;
    double grad_norm = 0;
    int64_t gradient_steps = 0;
    int64_t skipped_steps = 0;
  };

  // Of the targets of one epoch.
  struct TargetFigures {
    double explained_variance = 0;
    double vtrace_rho = 1;
  };

  torch::Tensor Values(const torch::Tensor& obs) const;
  // Of the current policy, [R].
  torch::Tensor LogProb(const Minibatch& samples) const;
  // Sets advantage, old_value and value_target, all [R].
  TargetFigures ComputeTargets(const Batch& batch, const Rows& rows, Minibatch& samples);
  torch::Tensor Permutation(int64_t size, uint64_t iteration, uint32_t epoch) const;
  // Both on the samples at int64 [B] `index`.
  void TrainMinibatch(const Minibatch& samples, const torch::Tensor& index, Totals& totals);
  // The loss and, in the optimizer's gradient buffer, its gradient.
  LossValues ComputeGradient(const Minibatch& samples, const torch::Tensor& index);

  const v1::RunConfig config_;
  const uint64_t seed_;
  std::shared_ptr<ActorCritic> network_;
  FlatAdam optimizer_;                    // After network_, whose parameters it moves.
  std::unique_ptr<FusedGradient> fused_;  // Null: autograd.
  RunningMoments obs_moments_;
  RunningMoments return_moments_;
  double lr_;
  v1::PpoConfig loss_config_;  // With this iteration's clip and entropy coefficient.
};

}  // namespace skein
