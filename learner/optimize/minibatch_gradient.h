// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/algorithm/ppo/fused_gradient.h"
#include "learner/algorithm/ppo/ppo_loss.h"
#include "learner/network/actor_critic.h"
#include "learner/optimize/flat_adam.h"
#include "learner/optimize/memory_limit.h"
#include "learner/ranks/collective.h"
#include "learner/ranks/gradient_reducer.h"
#include "skein/v1/config.pb.h"

namespace skein {

// PpoLoss of a minibatch and its gradient, by the cheapest way that the device and settings allow: written out
// (FusedGradient) or autograd, in pieces that memory suffices for, summed over the ranks.   Minibatch -> Compute ->
// optimizer.gradient()
// Not thread-safe.
class MinibatchGradient {
 public:
  // `network` and `optimizer`, which moves its parameters, must outlive this; `collective` too, which may be null.
  MinibatchGradient(const v1::LearnerConfig& config, const ActorCritic& network, FlatAdam* optimizer,
                    Collective* collective);

  // Of one rank's rows of a minibatch that has `minibatch_size` rows on all ranks: weights count accordingly, so that
  // gradients and LossValues of all ranks add up to the whole minibatch's. `index` int64 on the samples' device says
  // which rows; undefined: all. Afterwards optimizer.gradient() has the sum over the ranks, `loss` this rank's part.
  // A loss that is not finite on any rank makes the gradient not a number on every rank.
  // Errors: as Collective's; ResourceExhausted: out of memory with a single sample.
  absl::Status Compute(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                       const v1::PpoConfig& config, LossValues* loss);
  // The same without waiting for the device: float64 [5] there, LossValues without total, in order.
  // `recorded` (StepGraph): an exception for lack of memory passes through. Autograd alone reads `coefficients`.
  absl::Status Enqueue(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                       const v1::PpoConfig& config, torch::Tensor* loss, const LossCoefficients& coefficients = {},
                       bool recorded = false);

  // Without gradients: of what the value function reads, [B, C] on any device, [B] on `device`.
  absl::StatusOr<torch::Tensor> Values(const torch::Tensor& input, torch::Device device = torch::kCPU);
  // Of obs [B, O], mean [B, D] or logits [B, C] on the CPU.
  absl::StatusOr<torch::Tensor> PolicyHead(const torch::Tensor& obs);

  MemoryLimit& memory() { return memory_; }
  const GradientReducer* reducer() const { return reducer_.get(); }  // Null: a single rank.
  // How often memory did not suffice.
  int64_t out_of_memory() const { return memory_.out_of_memory() + forward_memory_.out_of_memory(); }

 private:
  // Which loss, and whether its kernels are being recorded.
  struct Pass {
    const v1::PpoConfig& config;
    LossCoefficients coefficients;
    bool recorded = false;
  };
  // Sums up the gradient of the rows, piece by piece, and that of all ranks. `add` gets the terms of each piece and
  // their weight.
  absl::Status Differentiate(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                             const Pass& pass, const std::function<void()>& reset,
                             const std::function<void(const LossTerms&, double)>& add);
  absl::Status DifferentiateFused(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                                  const v1::PpoConfig& config, LossValues* loss);
  LossTerms Terms(const Minibatch& minibatch, const Pass& pass) const;
  // Before the gradient is computed, or computed again: zero, and nobody adds to it.
  absl::Status Begin();
  using Network = std::function<torch::Tensor(const torch::Tensor&)>;
  absl::StatusOr<torch::Tensor> Forward(const torch::Tensor& input, const Network& network);

  const ActorCritic& network_;
  FlatAdam& optimizer_;
  const torch::Device device_;
  const torch::ScalarType precision_;
  const std::unique_ptr<FusedGradient> fused_;      // Null: autograd.
  const std::unique_ptr<GradientReducer> reducer_;  // Null: a single rank.
  bool armed_ = false;                              // The reducer, for the pass that runs or has failed.
  MemoryLimit memory_;
  MemoryLimit forward_memory_;
};

}  // namespace skein
