// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "learner/optimize/minibatch.h"

namespace skein {

// A loss as numbers, or a sum of such.
struct LossValues {
  double total = 0;
  std::vector<double> stats;  // By Loss::stats().

  LossValues& operator+=(const LossValues& other) {
    total += other.total;
    if (stats.size() < other.stats.size()) stats.resize(other.stats.size());
    for (size_t i = 0; i < other.stats.size(); ++i) stats[i] += other.stats[i];
    return *this;
  }
};

// A loss and its gradient written out by hand, for the networks that it pays for. Equal to the Loss that made it, up to
// rounding, which a test must show.
class AcceleratedLoss {
 public:
  virtual ~AcceleratedLoss() = default;
  // Adds the gradient of the samples index[0..size) to the grad() of every parameter; returns their loss. Both are
  // these samples' share in the means over all `minibatch_size` samples of the minibatch.
  virtual LossValues Differentiate(const Minibatch& samples, const int64_t* index, int64_t size,
                                   int64_t minibatch_size) = 0;
  // Without gradients: what the value function reads [B, C] -> [B]; obs [B, O] -> mean [B, D] or logits [B, C].
  virtual torch::Tensor Values(const torch::Tensor& input) = 0;
  virtual torch::Tensor PolicyHead(const torch::Tensor& obs) = 0;
};

// What gradient steps descend.   Minibatch -> Compute -> backward, by MinibatchGradient
// The engine knows no other word of an algorithm. Not thread-safe.
class Loss {
 public:
  struct Terms {
    torch::Tensor total;               // Mean over the samples, a scalar; its gradient is taken.
    std::vector<torch::Tensor> stats;  // Means over the samples, scalars, by stats(); no gradient is taken.
  };

  virtual ~Loss() = default;
  // What it tells of itself beside the total, for UpdateStats.
  virtual std::vector<std::string> stats() const = 0;
  // What schedules change between updates, as of now.
  virtual std::vector<double> scheduled() const { return {}; }
  // `scheduled`: the same as float32 [] on the samples' device, to be read from there where a step is recorded, and
  // equal up to rounding; empty: the numbers of now. Parameters take part through the graph that is recorded.
  virtual Terms Compute(const Minibatch& samples, const std::vector<torch::Tensor>& scheduled) const = 0;
  // The same by hand, on `threads` threads, or null where there is none for the network. It follows this loss's
  // schedules; this must outlive it. REQUIRES: the parameters' grad() is defined and stays where it is.
  virtual std::unique_ptr<AcceleratedLoss> Accelerated(int threads) const {
    static_cast<void>(threads);
    return nullptr;
  }
};

}  // namespace skein
