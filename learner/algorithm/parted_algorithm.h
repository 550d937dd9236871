// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/algorithm/algorithm.h"
#include "learner/optimize/thread_team.h"
#include "learner/ranks/collective.h"
#include "skein/v1/config.pb.h"

namespace skein {

// An algorithm that trains in learner.gradient_parts parts, some of which this rank has: each computes on a thread of
// its own, from its own environments, what a rank with these computes. No bit depends on the number of ranks.
//   Batch -> ColumnsOf each part -> the parts' Update, side by side
// A part has networks, normalisers and optimiser of its own, equal to the others'.
// If a part fails, the others wait for it until Collective's timeout.
class PartedAlgorithm final : public Algorithm {
 public:
  // `make` makes the algorithm of one part, a member of the group that it is given. `ranks`: null: a single rank.
  // Errors as ConnectParts, and those of `make`.
  static absl::StatusOr<std::unique_ptr<Algorithm>> Make(
      const v1::LearnerConfig& config, Collective* ranks,
      const std::function<absl::StatusOr<std::unique_ptr<Algorithm>>(Collective* part)>& make);

  void SetSettings(const v1::RunConfig& config) override;
  absl::StatusOr<UpdateStats> Update(const Batch& batch, double progress, uint64_t iteration) override;
  StateTensors SampleStats() const override;
  absl::Status Restore(const StateTensors& model, const StateTensors& optimizer) override;
  absl::Status Synchronize() override;

  std::vector<WatchRule> WatchRules() const override { return first().WatchRules(); }
  v1::PolicySnapshot Snapshot(uint64_t version) const override { return first().Snapshot(version); }
  Acting acting() const override { return first().acting(); }
  StateTensors ModelState() const override { return first().ModelState(); }
  StateTensors OptimizerState() const override { return first().OptimizerState(); }
  uint64_t ParametersDigest() const override { return first().ParametersDigest(); }
  const GradientReducer* reducer() const override { return first().reducer(); }

 private:
  explicit PartedAlgorithm(std::vector<std::unique_ptr<Collective>> groups);
  const Algorithm& first() const { return *parts_.front(); }
  // Does `work` with each part, side by side. Returns the error of the part that failed first.
  absl::Status OnAll(const std::function<absl::Status(size_t part)>& work);

  const std::vector<std::unique_ptr<Collective>> groups_;  // Each part's end of the group of all ranks' parts.
  std::vector<std::unique_ptr<Algorithm>> parts_;
  ThreadTeam team_;
  int64_t steps_ = 0;  // Of the last batch.
};

}  // namespace skein
