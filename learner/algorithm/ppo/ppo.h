// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/algorithm/ppo/ppo_loss.h"
#include "learner/network/actor_critic.h"
#include "learner/network/normalizer.h"
#include "learner/optimize/batch.h"
#include "learner/optimize/device_copy.h"
#include "learner/optimize/flat_adam.h"
#include "learner/optimize/minibatch_gradient.h"
#include "learner/optimize/minibatch_order.h"
#include "learner/optimize/step_graph.h"
#include "learner/ranks/collective.h"
#include "skein/v1/config.pb.h"

// Proximal policy optimisation, Schulman et al. 2017, with the usual refinements.   Batch -> Ppo::Update -> new weights
// docs/algorithms.md says exactly what is computed.
namespace skein {

// The schedule kl_adaptive: lr times or over 1.5 when kl is under target / 2 or over 2 target; within [1e-6, 1e-2].
double AdaptLearningRate(double lr, double kl, double kl_target);

// Learning state of one run: networks, optimizer, normalisers. Not thread-safe.
// Several ranks make the same calls with their shares of the same batches. Each ends up with the same state, to the
// bit, and up to rounding with that of a single rank which has the whole batch.
class Ppo {
 public:
  // REQUIRES: defaults applied to `config` and validated. `collective` must outlive this; null: a single rank.
  Ppo(const v1::RunConfig& config, const ActorCriticOptions& network, uint64_t seed, Collective* collective = nullptr,
      torch::Device device = torch::kCPU);

  // Figures of one update, of all ranks' data. Averaged over its gradient steps: policy_loss, value_loss, entropy, kl,
  // clip_fraction, grad_norm. As of its beginning: explained_variance, lr and, in mode async, vtrace_rho (mean clipped
  // importance weight, 1 when on-policy; agents that took no part count as 1). Counted: epochs, gradient_steps,
  // skipped_steps, and out_of_memory (how often passes were made smaller because memory did not suffice).
  using Figures = std::map<std::string, double>;

  // Trains on one iteration's data. progress in [0, 1] drives linear schedules. `iteration` keys the minibatch order.
  // Observations are normalised with the statistics before this batch (those the behaviour policy had); the
  // statistics take the batch in afterwards. Not finite: the minibatch is skipped and counted as figure skipped_steps.
  // ResourceExhausted: memory does not suffice for a single sample. FailedPrecondition: there is no sample, or the
  // ranks' batches do not fit together. Internal: the ranks' parameters differ afterwards. Others as Collective's.
  // After an error the state is undefined.
  absl::StatusOr<Figures> Update(const Batch& batch, double progress, uint64_t iteration);

  // Rank 0's state to all. Each rank calls it, once after construction and after Restore. Errors as Update.
  absl::Status Synchronize();
  // XXH3-64 of the parameters' bytes.
  uint64_t ParametersDigest() const;

  // Of the last update as its last epoch had it, before it was normalised: float32 [R]. Undefined before the first.
  const torch::Tensor& advantage() const { return advantage_; }

  // What summing gradients has cost so far; null: a single rank.
  const GradientReducer* reducer() const { return gradient_.reducer(); }

  const ActorCritic& network() const { return *network_; }
  ObsScale obs_scale() const;
  ObsScale state_scale() const;  // Of the global state, if the critic is central.

  // Everything that learning depends on, for checkpoints; names are stable. Tensors are copies.
  std::vector<std::pair<std::string, torch::Tensor>> ModelState() const;      // weights and normalisers
  std::vector<std::pair<std::string, torch::Tensor>> OptimizerState() const;  // moments, step counts, learning rate
  // InvalidArgument: names or shapes differ from this run's (names the first that does); then nothing has changed.
  absl::Status Restore(const std::vector<std::pair<std::string, torch::Tensor>>& model,
                       const std::vector<std::pair<std::string, torch::Tensor>>& optimizer);

  // For tests. Called before each pass forward and backward with its samples; throws where memory shall not suffice.
  void SetMemoryProbe(std::function<void(int64_t samples)> probe) { gradient_.memory().SetProbe(std::move(probe)); }
  // For tests. Does what is otherwise done on a GPU: does not wait for the device in each gradient step.
  void EnqueueSteps() { enqueues_ = true; }
  // Records enqueued steps of fixed shape; null: by a CUDA graph, or not at all where that cannot be, which is logged.
  void RecordSteps(std::unique_ptr<Recorder> recorder);
  bool records() const { return graph_ != nullptr && graph_->recorded(); }

 private:
  // One iteration's data where training takes them from, observations normalised and rows flattened: R = T * M.
  struct Data {
    const Batch& batch;
    RowShare share;
    torch::Tensor critic;        // What the value function reads, [R + M, C].
    torch::Tensor final_critic;  // [K, C]
    Minibatch samples;           // [R]
    torch::Tensor active;        // bool [R]; undefined = all.
  };
  // Sums over the gradient steps that were taken.
  struct Totals {
    LossValues loss;
    double grad_norm = 0;
    int64_t gradient_steps = 0;
    int64_t skipped_steps = 0;
    int64_t out_of_memory = 0;
  };
  // Of the targets of one epoch.
  struct TargetFigures {
    double explained_variance = 0;
    double vtrace_rho = 1;
  };
  struct Targets {
    torch::Tensor advantage, old_value, value_target;  // [R], on the CPU.
    TargetFigures figures;
  };

  void SetSchedules(double progress);
  bool prefetches() const {
    return enqueues_ && config_.learner().prefetch_depth() > 0 && config_.sync().mode() != v1::SYNC_MODE_ON_DEVICE;
  }
  Data Prepare(const Batch& batch);
  absl::StatusOr<Targets> ComputeTargets(const Data& data);
  // Takes returns into their statistics; gives the share of their variance that `value`, both [R], explains.
  absl::StatusOr<double> CountReturns(const torch::Tensor& returns, const torch::Tensor& value);
  // Takes the values of `rows` [B, *] into `moments`, unless some of `all` are not finite.
  absl::Status CountRows(const torch::Tensor& rows, const torch::Tensor& all, RunningMoments* moments);
  absl::Status CountObservations(const Data& data);
  absl::StatusOr<MinibatchOrder> Shuffle(const Data& data, uint64_t iteration, uint32_t epoch);
  absl::Status TrainEpoch(const Minibatch& samples, const MinibatchOrder& order, Totals& totals);
  // On the samples at int64 [B] `index`, or on all if undefined; `size` with those of all ranks.
  absl::Status TrainMinibatch(const Minibatch& samples, const torch::Tensor& index, int64_t size, Totals& totals);
  // With a gradient and its loss as MinibatchGradient::Enqueue leaves them.
  void EnqueueStep(const torch::Tensor& loss, const torch::Tensor& lr);
  // Takes in what was enqueued, and what other ranks have added since `before`.
  absl::Status Settle(const Totals& before, Totals& totals);

  const v1::RunConfig config_;
  const uint64_t seed_;
  Collective* const collective_;
  const torch::Device device_;
  std::shared_ptr<ActorCritic> network_;
  FlatAdam optimizer_;          // After network_, whose parameters it moves.
  MinibatchGradient gradient_;  // After both.
  DeviceCopier copier_;
  const bool central_;  // The value function reads the global state beside an observation.
  RunningMoments obs_moments_;
  RunningMoments state_moments_;  // Of the global state, G; 0 unless central.
  RunningMoments return_moments_;
  bool enqueues_;
  // Of this epoch's enqueued steps, float64 [8]: policy_loss, ..., clip_fraction, grad_norm, gradient and skipped
  // steps.
  torch::Tensor enqueued_;
  std::unique_ptr<StepGraph> graph_;  // Null: nothing is recorded.
  int64_t out_of_memory_ = 0;         // Of gradient_, as far as figures have told it.
  torch::Tensor advantage_;           // See advantage().
  double lr_;
  v1::PpoConfig loss_config_;  // With this iteration's clip and entropy coefficient.
};

}  // namespace skein
