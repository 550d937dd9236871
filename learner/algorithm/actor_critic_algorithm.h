// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>

#include "learner/algorithm/algorithm.h"
#include "learner/optimize/gradient_steps.h"
#include "learner/optimize/loss.h"
#include "learner/optimize/normalizers.h"
#include "learner/optimize/training_data.h"
#include "learner/ranks/collective.h"
#include "skein/v1/config.pb.h"

// The base class of algorithms with policy and value networks.
namespace skein {

// Makes the policy and value networks with initial weights from `seed`, on `device`.
std::shared_ptr<ActorCritic> MakeNetworks(const ActorCriticOptions& options, uint64_t seed, torch::Device device);

// Base class of algorithms that train policy and value networks by gradient descent on a Loss. It implements all of
// Algorithm but Update; the derived class supplies the loss.
class ActorCriticAlgorithm : public Algorithm {
 public:
  void SetSettings(const v1::RunConfig& config) override { config_ = config; }
  v1::PolicySnapshot Snapshot(uint64_t version) const final;
  Acting acting() const final { return {network_.get(), normalizers_.obs_scale(), normalizers_.state_scale()}; }
  StateTensors ModelState() const final;
  StateTensors OptimizerState() const final;
  absl::Status Restore(const StateTensors& model, const StateTensors& optimizer) final;
  absl::Status Synchronize() final;
  uint64_t ParametersDigest() const final;
  const GradientReducer* reducer() const final { return steps_.reducer(); }

  const ActorCritic& network() const { return *network_; }
  GradientSteps& steps() { return steps_; }

 protected:
  // REQUIRES: `config` has every field set and is validated; `loss` evaluates `network`. `collective` must outlive
  // this; null: a single rank.
  ActorCriticAlgorithm(const v1::RunConfig& config, std::shared_ptr<ActorCritic> network,
                       std::shared_ptr<const Loss> loss, double adam_epsilon, double max_grad_norm, double lr,
                       Collective* collective, torch::Device device);

  // Begin and end of an update on all ranks. Prepare checks that the ranks' batches fit together and returns the data.
  // Finish checks that the ranks' parameters are equal and returns the stats of the steps. Errors as Update's.
  absl::StatusOr<TrainingData> Prepare(const Batch& batch, uint64_t iteration);
  absl::StatusOr<UpdateStats> Finish(const GradientSteps::Totals& totals) const;

  const v1::RunConfig& config() const { return config_; }
  Collective* collective() const { return collective_; }
  Normalizers& normalizers() { return normalizers_; }
  double lr() const { return lr_; }
  void set_lr(double lr) { lr_ = lr; }

 private:
  v1::RunConfig config_;
  Collective* const collective_;
  const std::shared_ptr<ActorCritic> network_;
  const std::shared_ptr<const Loss> loss_;
  Normalizers normalizers_;
  GradientSteps steps_;  // After network_ and loss_.
  double lr_;
};

}  // namespace skein
