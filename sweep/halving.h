// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sweep/scheduler.h"

// Successive halving: of the trials at a rung the best share goes on.
namespace skein {

// Asynchronous successive halving, ASHA, in the form that promotes (Li et al. 2020, "A system for massively parallel
// hyperparameter tuning", algorithm 2). Of the n trials with a result at a rung the best floor(n / reduction) may go
// on, at once, whatever others are still on their way to it; the highest rung comes first. With nothing to promote a
// new trial begins. Among equals the lower number is better.
class AsyncHalving : public Scheduler {
 public:
  AsyncHalving(std::vector<uint64_t> rungs, uint32_t reduction) : rungs_(std::move(rungs)), reduction_(reduction) {}

  const std::vector<uint64_t>& rungs(uint32_t) const override { return rungs_; }
  bool pauses() const override { return true; }
  Verdict Judge(const std::vector<Trial>& trials, bool more) const override;
  double ExpectedSteps(uint32_t trials) const override;

 private:
  const std::vector<uint64_t> rungs_;
  const uint32_t reduction_;
};

// Hyperband (Li et al. 2018, "Hyperband", algorithm 1): brackets of successive halving, from many trials that begin
// with few steps to few that are trained to the end. A rung of a bracket is finished before any of its trials goes on;
// a trial that has failed counts as the worst. After the last bracket comes the first again.
class Hyperband : public Scheduler {
 public:
  Hyperband(uint64_t least, uint32_t reduction, uint64_t total);

  const std::vector<uint64_t>& rungs(uint32_t group) const override {
    return brackets_[group % brackets_.size()].rungs;
  }
  bool pauses() const override { return true; }
  Verdict Judge(const std::vector<Trial>& trials, bool more) const override;
  // Those of all brackets once.
  uint32_t default_trials() const override { return all_; }
  double ExpectedSteps(uint32_t trials) const override;

 private:
  struct Bracket {
    uint32_t trials = 0;  // That begin in it.
    std::vector<uint64_t> rungs;
  };
  // The bracket of the trial with this number: brackets_.size() x round + bracket.
  uint32_t GroupOf(uint32_t number) const;
  void JudgeGroup(const std::vector<const Trial*>& members, const Bracket& bracket, bool full, Verdict* verdict) const;

  const uint32_t reduction_;
  std::vector<Bracket> brackets_;
  uint32_t all_ = 0;
};

}  // namespace skein
