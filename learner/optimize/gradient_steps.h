// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "learner/network/actor_critic.h"
#include "learner/optimize/batch_forward.h"
#include "learner/optimize/device_copy.h"
#include "learner/optimize/flat_adam.h"
#include "learner/optimize/loss.h"
#include "learner/optimize/minibatch_gradient.h"
#include "learner/optimize/minibatch_order.h"
#include "learner/optimize/step_graph.h"
#include "learner/ranks/collective.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Optimises the networks: one step down the gradient of a Loss per minibatch. On the CPU each step is waited for; on a
// GPU it is enqueued, and recorded with learner.cuda_graph.   Minibatch, order -> TrainEpoch -> Settle -> Totals
// Not thread-safe. All ranks make the same calls with their rows of the same minibatches.
class GradientSteps {
 public:
  struct Options {
    v1::LearnerConfig learner;
    double adam_epsilon = 1e-8;
    double max_grad_norm = 0;      // 0 = no limit.
    bool batch_on_device = false;  // Batches are already on the training device: nothing is prefetched.
  };
  // Sums over the gradient steps that were taken.
  struct Totals {
    LossValues loss;  // loss.total is set only if steps are waited for.
    double grad_norm = 0;
    int64_t gradient_steps = 0;
    int64_t skipped_steps = 0;  // Steps not taken because loss or gradient was not finite.
    int64_t out_of_memory = 0;  // How often passes were made smaller for lack of memory.
  };

  // `network`, on `device`, `loss` and `collective` must outlive this. Null `collective`: a single rank.
  GradientSteps(const Options& options, const ActorCritic& network, const Loss& loss, Collective* collective,
                torch::Device device);

  Totals NoSteps() const;  // All zero.
  // One step on each minibatch of `order`, in order. Adds to `totals`, which is complete after Settle. Errors as
  // MinibatchGradient::Compute.
  absl::Status TrainEpoch(const Minibatch& samples, const MinibatchOrder& order, double lr, Totals* totals);
  // Waits for enqueued steps; adds their sums and those of the other ranks since `before`. Errors as Collective's.
  absl::Status Settle(const Totals& before, Totals* totals);

  // Whether samples stay in host memory until their minibatch's turn.
  bool prefetches() const { return enqueues_ && options_.learner.prefetch_depth() > 0 && !options_.batch_on_device; }
  torch::Device device() const { return device_; }
  FlatAdam& adam() { return adam_; }
  const FlatAdam& adam() const { return adam_; }
  BatchForward& forward() { return forward_; }
  DeviceCopier& copier() { return copier_; }
  const GradientReducer* reducer() const { return gradient_.reducer(); }  // Null: a single rank.

  // The samples of a row of the minibatches from now on, for learner.micro_batch_size. Not called: 1.
  void SetRowSize(int64_t samples) { gradient_.memory().SetRowSize(samples); }

  // For tests. Called before each forward and backward pass with its number of samples; throws for a lack of memory.
  void SetMemoryProbe(std::function<void(int64_t samples)> probe) { gradient_.memory().SetProbe(std::move(probe)); }
  // For tests. Enqueues steps as on a GPU, without waiting for the device in each gradient step.
  void EnqueueSteps() { enqueues_ = true; }
  // Records enqueued steps of fixed shape. Null: by a CUDA graph, or not at all (logged) where that is impossible.
  void RecordSteps(std::unique_ptr<Recorder> recorder);
  bool records() const { return graph_ != nullptr && graph_->recorded(); }

 private:
  absl::Status TrainAhead(const Minibatch& samples, const MinibatchOrder& order, double lr, Totals* totals);
  // On the samples at int64 [B] `index`, or on all if undefined. `size`: samples of the minibatch on all ranks.
  absl::Status TrainMinibatch(const Minibatch& samples, const torch::Tensor& index, int64_t size, double lr,
                              Totals* totals);
  // REQUIRES: MinibatchGradient::Enqueue has set the gradient and `stats`.
  void EnqueueStep(const torch::Tensor& stats, const torch::Tensor& lr);

  const Options options_;
  const Loss& loss_;
  const size_t stats_;
  Collective* const collective_;
  const torch::Device device_;
  FlatAdam adam_;
  MinibatchGradient gradient_;  // After adam_.
  BatchForward forward_;        // After gradient_.
  DeviceCopier copier_;
  bool enqueues_;
  // Of this epoch's enqueued steps, float64 [stats + 3]: sums of stats and of grad_norm; steps taken; steps skipped.
  torch::Tensor enqueued_;
  std::unique_ptr<StepGraph> graph_;  // Null: nothing is recorded.
  int64_t out_of_memory_ = 0;         // The part already added to totals.
};

}  // namespace skein
