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

// The gradient of a Loss over a minibatch, by the cheapest way that the device and settings allow: written out
// (AcceleratedLoss) or autograd, in pieces that memory suffices for, summed over the ranks.   Minibatch -> Compute ->
// optimizer.gradient()
// Not thread-safe.
class MinibatchGradient {
 public:
  // `loss` and `optimizer`, which moves `parameters`, must outlive this; `collective` too, which may be null.
  MinibatchGradient(const v1::LearnerConfig& config, const std::vector<torch::Tensor>& parameters, const Loss& loss,
                    FlatAdam* optimizer, Collective* collective);

  // Of one rank's rows of a minibatch that has `minibatch_size` rows on all ranks: weights count accordingly, so that
  // gradients and LossValues of all ranks add up to the whole minibatch's. `index` int64 on the samples' device says
  // which rows; undefined: all. Afterwards optimizer.gradient() has the sum over the ranks, `loss` this rank's part.
  // A loss that is not finite on any rank makes the gradient not a number on every rank.
  // Errors: as Collective's; ResourceExhausted: out of memory with a single sample.
  absl::Status Compute(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size, LossValues* loss);
  // The same without waiting for the device: `stats` float64 [Loss::stats()] there. `recorded` (StepGraph): an
  // exception for lack of memory passes through. Autograd alone reads `scheduled`.
  absl::Status Enqueue(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                       torch::Tensor* stats, const std::vector<torch::Tensor>& scheduled = {}, bool recorded = false);

  AcceleratedLoss* accelerated() const { return accelerated_.get(); }  // Null: autograd.
  MemoryLimit& memory() { return memory_; }
  const GradientReducer* reducer() const { return reducer_.get(); }  // Null: a single rank.

 private:
  // What the rows are evaluated with, and whether kernels are being recorded.
  struct Pass {
    std::vector<torch::Tensor> scheduled;
    bool recorded = false;
  };
  // Sums up the gradient of the rows, piece by piece, and that of all ranks. `add` gets the terms of each piece and
  // their weight.
  absl::Status Differentiate(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                             const Pass& pass, const std::function<void()>& reset,
                             const std::function<void(const Loss::Terms&, double)>& add);
  absl::Status DifferentiateAccelerated(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                                        LossValues* loss);
  LossValues Zero() const;
  // Before the gradient is computed, or computed again: zero, and no reduction adds to it.
  absl::Status Begin();

  const Loss& loss_;
  FlatAdam& optimizer_;
  const size_t stats_;
  const std::unique_ptr<AcceleratedLoss> accelerated_;
  const std::unique_ptr<GradientReducer> reducer_;
  bool armed_ = false;  // The reducer, for the pass that runs or has failed.
  MemoryLimit memory_;
};

}  // namespace skein
