// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learner/network/memory_cell.h"
#include "learner/optimize/minibatch.h"

// The interface of losses: what an algorithm gives to GradientSteps, and its hand-written, faster form.
namespace skein {

// The values of a loss as numbers, or a sum of such values.
struct LossValues {
  double total = 0;
  std::vector<double> stats;  // In the order of Loss::stats().

  LossValues& operator+=(const LossValues& other) {
    total += other.total;
    if (stats.size() < other.stats.size()) stats.resize(other.stats.size());
    for (size_t i = 0; i < other.stats.size(); ++i) stats[i] += other.stats[i];
    return *this;
  }
};

// A hand-written loss and gradient for the networks where it is faster than autograd. It equals the Loss that made it
// up to rounding; a test must show this.
class AcceleratedLoss {
 public:
  virtual ~AcceleratedLoss() = default;
  // Adds the gradient of the samples index[0..size) to the grad() of every parameter; returns their loss. Both are
  // these samples' contribution to the means over all `minibatch_size` samples of the minibatch.
  virtual LossValues Differentiate(const Minibatch& samples, const int64_t* index, int64_t size,
                                   int64_t minibatch_size) = 0;
  // Without gradients: value function input [B, C] -> [B]; obs [B, O] -> mean [B, D] or logits [B, C].
  virtual torch::Tensor Values(const torch::Tensor& input) = 0;
  virtual torch::Tensor PolicyHead(const torch::Tensor& obs) = 0;
  // What the policy's or the critic's memory gives, as RunMemory. REQUIRES: the network has this memory.
  virtual MemoryRun Remember(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& begins,
                             const torch::Tensor& state) = 0;
};

// The function that gradient steps minimise.   Minibatch -> Compute -> backward, by MinibatchGradient
// It is the only part of an algorithm that GradientSteps depends on. Not thread-safe.
class Loss {
 public:
  struct Terms {
    // Means over the rows, scalars. Where a row is a sequence (Sequences), it counts as the sum over its samples.
    torch::Tensor total;               // It is differentiated.
    std::vector<torch::Tensor> stats;  // In the order of stats(); no gradient.
  };

  virtual ~Loss() = default;
  // Names of the values beside the total, for UpdateStats.
  virtual std::vector<std::string> stats() const = 0;
  // Current values of the coefficients that schedules change between updates.
  virtual std::vector<double> scheduled() const { return {}; }
  // `scheduled`: the values of scheduled() as float32 [] on the samples' device, equal up to rounding, which a recorded
  // step reads; empty: the current values are used. Parameters need no argument: the loss reads the networks' tensors.
  virtual Terms Compute(const Minibatch& samples, const std::vector<torch::Tensor>& scheduled) const = 0;
  // The hand-written form, on `threads` threads; null if the network is not supported. It follows this loss's
  // schedules; this must outlive it. REQUIRES: the parameters' grad() is defined and stays at its address.
  virtual std::unique_ptr<AcceleratedLoss> Accelerated(int threads) const {
    static_cast<void>(threads);
    return nullptr;
  }
};

}  // namespace skein
