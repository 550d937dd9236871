// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/config/direction_rules.h"
#include "learner/collect/synchronous_collect.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/trajectory.pb.h"

namespace skein {

// Work orders for directions: an iteration consists of directions.num_dirs directions, and an env group is dir_chunk
// successive ones. Every order stands alone, because no state follows from it, and any actor may serve it.
class DirectionCollect : public SynchronousCollect {
 public:
  // `most_steps`: of an episode, in any phase. `office` and `pool` must outlive this.
  DirectionCollect(const v1::DirectionsConfig& config, uint32_t most_steps, TicketOffice* office, StagingPool* pool)
      : SynchronousCollect(1, office, pool), config_(config), most_steps_(most_steps) {}

  void OpenIteration(uint64_t policy_version, const WorkSettings& settings) override;
  void Complete(v1::Ticket* ticket) const override;

 private:
  const v1::DirectionsConfig config_;
  const uint32_t most_steps_;
  DirectionSettings settings_;  // Of the open iteration.
};

}  // namespace skein
