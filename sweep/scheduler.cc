// SPDX-License-Identifier: Apache-2.0
#include "sweep/scheduler.h"

#include <algorithm>
#include <cmath>

#include "sweep/halving.h"
#include "sweep/median_stopping.h"
#include "sweep/population.h"

namespace skein {
namespace {

// A rung at this share of the end, or more, is the end.
constexpr double kEnd = 0.99;

// Every trial is trained to the end.
class NoScheduler : public Scheduler {
 public:
  explicit NoScheduler(uint64_t total) : rungs_{total} {}
  const std::vector<uint64_t>& rungs(uint32_t) const override { return rungs_; }
  bool pauses() const override { return false; }
  Verdict Judge(const std::vector<Trial>&, bool) const override { return {}; }
  double ExpectedSteps(uint32_t trials) const override {
    return static_cast<double>(trials) * static_cast<double>(rungs_.back());
  }

 private:
  const std::vector<uint64_t> rungs_;
};

std::vector<uint64_t> EvenRungs(uint64_t interval, uint64_t total) {
  if (interval == 0) interval = std::max<uint64_t>(1, total / 10);
  std::vector<uint64_t> rungs;
  for (uint64_t at = interval; at < total; at += interval) rungs.push_back(at);
  rungs.push_back(total);
  return rungs;
}

}  // namespace

std::vector<uint64_t> HalvingRungs(uint64_t least, uint32_t reduction, uint64_t total) {
  const auto end = static_cast<double>(total);
  std::vector<uint64_t> rungs;
  double at = static_cast<double>(least);
  for (; at < kEnd * end; at *= reduction) rungs.push_back(static_cast<uint64_t>(std::llround(at)));
  if (at < end / kEnd) {
    at = end;
    for (size_t i = rungs.size(); i-- > 1;) rungs[i] = static_cast<uint64_t>(std::llround(at /= reduction));
  }
  rungs.push_back(total);
  return rungs;
}

std::unique_ptr<Scheduler> MakeScheduler(const v1::SweepConfig& config, uint64_t total) {
  const v1::SweepScheduler& settings = config.scheduler();
  const uint32_t reduction = std::max(2u, settings.reduction());  // Not set: the scheduler is none.
  uint64_t least = settings.min_steps();
  if (least == 0) least = std::max<uint64_t>(1, total / (uint64_t{reduction} * reduction * reduction));
  switch (settings.kind()) {
    case v1::SWEEP_SCHEDULE_MEDIAN:
      return std::make_unique<MedianStopping>(EvenRungs(settings.interval_steps(), total), settings.min_trials());
    case v1::SWEEP_SCHEDULE_ASHA:
      return std::make_unique<AsyncHalving>(HalvingRungs(least, reduction, total), reduction);
    case v1::SWEEP_SCHEDULE_HYPERBAND:
      return std::make_unique<Hyperband>(least, reduction, total);
    case v1::SWEEP_SCHEDULE_POPULATION:
      return std::make_unique<Population>(EvenRungs(settings.interval_steps(), total), settings.population(),
                                          settings.quantile(), config.seed());
    default:
      return std::make_unique<NoScheduler>(total);
  }
}

}  // namespace skein
