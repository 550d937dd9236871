// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "learner/optimize/flat_adam.h"
#include "learner/optimize/loss.h"
#include "learner/optimize/memory_limit.h"
#include "learner/ranks/collective.h"
#include "learner/ranks/gradient_reducer.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Computes the gradient of a Loss over a minibatch and sums it over the ranks.
// It uses AcceleratedLoss if there is one, else autograd, in pieces that fit into memory.
//   Minibatch -> Compute -> optimizer.gradient()
// Not thread-safe.
class MinibatchGradient {
 public:
  // `loss`, `optimizer` (the optimiser of `parameters`) and `collective` (may be null) must outlive this.
  MinibatchGradient(const v1::LearnerConfig& config, const std::vector<torch::Tensor>& parameters, const Loss& loss,
                    FlatAdam* optimizer, Collective* collective);

  // For this rank's rows of a minibatch that has `minibatch_size` rows on all ranks. Means are over all ranks' rows, so
  // that the gradients and LossValues of all ranks add up to the whole minibatch's. `index` int64 on the samples'
  // device selects rows; undefined: all. Then optimizer.gradient() is the sum over the ranks, `loss` this rank's part.
  // If the loss is not finite on some rank, the gradient is NaN on every rank.
  // Errors: as Collective's; ResourceExhausted: out of memory with a single sample or sequence.
  absl::Status Compute(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size, LossValues* loss);
  // The same without waiting for the device. `stats`: float64 [Loss::stats().size()] on it. `recorded` (StepGraph): an
  // exception for lack of memory passes through. Only autograd reads `scheduled`.
  absl::Status Enqueue(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                       torch::Tensor* stats, const std::vector<torch::Tensor>& scheduled = {}, bool recorded = false);

  AcceleratedLoss* accelerated() const { return accelerated_.get(); }  // Null: autograd.
  MemoryLimit& memory() { return memory_; }
  const GradientReducer* reducer() const { return reducer_.get(); }  // Null: a single rank.

 private:
  // Scheduled values of one evaluation, and whether its kernels are being recorded.
  struct Pass {
    std::vector<torch::Tensor> scheduled;
    bool recorded = false;
  };
  // Adds up the gradient of the rows, piece by piece, then over all ranks. `add` receives the terms of each piece and
  // their weight.
  absl::Status Differentiate(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                             const Pass& pass, const std::function<void()>& reset,
                             const std::function<void(const Loss::Terms&, double)>& add);
  absl::Status DifferentiateAccelerated(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                                        LossValues* loss);
  LossValues Zero() const;
  // Called before each attempt to compute the gradient: sets it to zero and ends a reduction of an earlier attempt.
  absl::Status Begin();

  const Loss& loss_;
  FlatAdam& optimizer_;
  const size_t stats_;
  const std::unique_ptr<AcceleratedLoss> accelerated_;
  const std::unique_ptr<GradientReducer> reducer_;
  bool armed_ = false;  // The reducer is prepared for the current pass, or for one that failed.
  MemoryLimit memory_;
};

}  // namespace skein
