// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/optim/adam.h>
#include <torch/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "model/actor_critic.h"
#include "model/normalizer.h"
#include "skein/v1/config.pb.h"

// Proximal policy optimisation, Schulman et al. 2017, with the usual refinements.   Batch -> Ppo::Update -> new weights
namespace skein {

// One iteration's data in env-index order, time-major, raw observations. N environments, A agents, flattened to M = N*A columns.
struct Batch {
  torch::Tensor obs;           // float32 [T+1, M, O]
  torch::Tensor action;        // float32 [T, M, D], or int64 [T, M] if discrete
  torch::Tensor log_prob;      // float32 [T, M], of the behaviour policy
  torch::Tensor reward;        // float32 [T, M]
  torch::Tensor terminated;    // bool [T, M]
  torch::Tensor truncated;     // bool [T, M]
  torch::Tensor final_obs;     // float32 [K, O], true last observations of truncated episodes
  torch::Tensor final_index;   // int64 [K], position t * M + m of each
};

struct LossTerms {
  torch::Tensor total;          // policy + value_coefficient * value - entropy_coefficient * entropy
  torch::Tensor policy;         // -mean(min(ratio A, clip(ratio) A))
  torch::Tensor value;          // mean squared error (clipped variant if value_clip > 0), without factor 1/2
  torch::Tensor entropy;
  torch::Tensor kl;             // mean((ratio - 1) - log ratio), Schulman's k3 estimator; no gradient
  torch::Tensor clip_fraction;  // share of |ratio - 1| > clip; no gradient
};

// Pure: the loss of one minibatch. All of size [B]; old_value only used if value_clip > 0; value_target in the value net's units.
LossTerms PpoLoss(const torch::Tensor& new_log_prob, const torch::Tensor& old_log_prob, const torch::Tensor& advantage,
                  const torch::Tensor& new_value, const torch::Tensor& old_value, const torch::Tensor& value_target,
                  const torch::Tensor& entropy, const v1::PpoConfig& config);

// Learning state of one run: networks, optimizer, normalisers. Not thread-safe.
class Ppo {
 public:
  Ppo(const v1::RunConfig& config, const ActorCriticOptions& network, uint64_t seed);

  // Figures of one update, averaged over its minibatches: policy_loss, value_loss, entropy, kl, clip_fraction,
  // explained_variance, lr, grad_norm, gradient_steps.
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
  const v1::RunConfig config_;
  uint64_t seed_;
  std::shared_ptr<ActorCritic> network_;
  std::unique_ptr<torch::optim::Adam> optimizer_;
  RunningMoments obs_moments_;
  RunningMoments return_moments_;
  double lr_;
};

}  // namespace skein
