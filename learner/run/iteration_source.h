// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/ranks/env_share.h"
#include "learner/ranks/rank_group.h"
#include "learner/run/trainer.h"
#include "skein/v1/tensor.pb.h"
#include "trajectory/columns.h"

namespace skein {

// The source of a rank's part of each iteration: actors (CollectedIterations) or the learner's own device
// (DeviceIterations).   TakeShare -> { Next -> update -> Publish -> Trained } ...
// Only for the training thread. A trainer passed to a call is used during that call only.
class IterationSource {
 public:
  // This rank's training data of one iteration.
  struct Iteration {
    Columns* batch = nullptr;  // Valid until the next Next; null: the trainer has collected the data on the device.
    Trainer::Collected data;
    uint64_t policy_version = 0;  // The oldest version that the data were made with.
    TicketState state;            // Of this rank's share: where the next iteration begins; empty: not known.
  };
  struct Answer {
    RankDecision decision;               // The same on all ranks.
    std::optional<Iteration> iteration;  // nullopt: stop, or the ranks meet again.
  };

  virtual ~IterationSource() = default;
  // Assigns these environments of the run to this rank. They continue from `state`, or begin their first episodes if it
  // is empty. Steps collected and not trained on are lost.
  virtual absl::Status TakeShare(const EnvShare& share, const TicketState& state, Trainer* trainer) = 0;
  // Waits until the next iteration is complete and the ranks agree on what comes next.
  virtual absl::StatusOr<Answer> Next(const RunRecord& record, Trainer* trainer) = 0;
  // Publishes the trainer's policy for the next steps. `iteration`: updates so far.
  virtual absl::Status Publish(uint64_t iteration, const Trainer& trainer) = 0;
  // `env_steps` env steps of this rank were trained on.
  virtual void Trained(uint64_t env_steps) = 0;
  // Where environments and memories are, for a checkpoint; nullopt: Iteration::state already has it.
  virtual absl::StatusOr<std::optional<TicketState>> State(const Trainer& trainer) const = 0;
};

}  // namespace skein
