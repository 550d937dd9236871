// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sweep/scheduler.h"

namespace skein {

// Population-based training (Jaderberg et al. 2017) with truncation selection, in generations: once all members are at
// a rung, each of the worst `quantile` is replaced by a copy of one of the best `quantile`, drawn at random, and all go
// on. A member whose trial has failed, or was refused, is replaced too. The copy is a trial of its own.
class Population : public Scheduler {
 public:
  Population(std::vector<uint64_t> rungs, uint32_t size, double quantile, uint64_t seed)
      : rungs_(std::move(rungs)), size_(size), quantile_(quantile), seed_(seed) {}

  const std::vector<uint64_t>& rungs(uint32_t) const override { return rungs_; }
  bool pauses() const override { return true; }
  Verdict Judge(const std::vector<Trial>& trials, bool more) const override;
  uint32_t default_trials() const override { return size_; }
  double ExpectedSteps(uint32_t) const override {
    return static_cast<double>(size_) * static_cast<double>(rungs_.back());
  }

 private:
  const std::vector<uint64_t> rungs_;
  const uint32_t size_;
  const double quantile_;
  const uint64_t seed_;
};

}  // namespace skein
