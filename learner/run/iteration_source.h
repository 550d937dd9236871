// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/collect/env_share.h"
#include "learner/ranks/rank_group.h"
#include "learner/run/trainer.h"
#include "skein/v1/tensor.pb.h"
#include "trajectory/columns.h"

namespace skein {

// Where a rank's part of each iteration comes from: actors (CollectedIterations) or the learner's own device
// (DeviceIterations).   TakeShare -> { Next -> update -> Publish -> Trained } ...
// For the thread that trains. What is called with a trainer uses it during the call only.
class IterationSource {
 public:
  // What this rank trains on.
  struct Iteration {
    Columns* batch = nullptr;  // Valid until the next Next; null: what the trainer has collected on the device.
    Trainer::Collected data;
    uint64_t policy_version = 0;  // The oldest that it was made with.
    TicketState state;            // Of this rank's share, where the next one begins; empty: not known.
  };
  struct Answer {
    RankDecision decision;               // As all ranks have made it.
    std::optional<Iteration> iteration;  // Nullopt: stop, or the ranks meet anew.
  };

  virtual ~IterationSource() = default;
  // These environments of the run are this rank's from now on, from `state` on or from their first episodes. What
  // was collected and not trained on is lost.
  virtual absl::Status TakeShare(const EnvShare& share, const TicketState& state, Trainer* trainer) = 0;
  // Waits until the next iteration is there and the ranks agree on what comes next.
  virtual absl::StatusOr<Answer> Next(const RunRecord& record, Trainer* trainer) = 0;
  // The trainer's policy is what the next steps are made with. `iteration`: updates so far.
  virtual absl::Status Publish(uint64_t iteration, const Trainer& trainer) = 0;
  // So many env steps of this rank were trained on.
  virtual void Trained(uint64_t env_steps) = 0;
  // Where the environments are, for a checkpoint, if only this call tells; nullopt: iterations have told it.
  virtual absl::StatusOr<std::optional<v1::Tensor>> EnvState(const Trainer& trainer) const = 0;
};

}  // namespace skein
