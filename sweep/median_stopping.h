// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sweep/scheduler.h"

namespace skein {

// The median stopping rule (Golovin et al. 2017, "Google Vizier", section 3.2.2): a trial is stopped at a rung if its
// best result up to there is worse than the median of the means, up to there, of the trials that are complete.
class MedianStopping : public Scheduler {
 public:
  // `min_trials`: complete before any is stopped.
  MedianStopping(std::vector<uint64_t> rungs, uint32_t min_trials)
      : rungs_(std::move(rungs)), min_trials_(min_trials) {}

  const std::vector<uint64_t>& rungs(uint32_t) const override { return rungs_; }
  bool pauses() const override { return false; }
  Verdict Judge(const std::vector<Trial>& trials, bool more) const override;
  double ExpectedSteps(uint32_t trials) const override;

 private:
  const std::vector<uint64_t> rungs_;
  const uint32_t min_trials_;
};

}  // namespace skein
