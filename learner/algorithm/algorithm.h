// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/algorithm/update_stats.h"
#include "learner/algorithm/watch_rule.h"
#include "learner/network/actor_critic.h"
#include "learner/network/normalizer.h"
#include "learner/optimize/batch.h"
#include "learner/ranks/gradient_reducer.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/policy.pb.h"

namespace skein {

// A learning algorithm with its state (networks, optimiser, normalisers).   Batch -> Update -> Snapshot
// Which fields of a fragment it reads and in which modes its data may be collected are AlgorithmFacts beside its
// settings in config.proto, because programs without this library need them (base/config/algorithm_rules.h). A batch
// comes in one of these modes and has these fields. All ranks make the same calls with their shares of the same
// batches. Their states stay equal to the bit. Not thread-safe. Torch's exceptions pass through.
class Algorithm {
 public:
  virtual ~Algorithm() = default;

  // From now on the settings that a phase may set are those of `config` (base/config/phases.h); its others are those
  // that the algorithm was made with. All ranks call it before the same updates.
  virtual void SetSettings(const v1::RunConfig& config) { (void)config; }

  // Trains on one iteration's data. `progress` of the run, in [0, 1], drives schedules. `iteration` keys random
  // streams. ResourceExhausted: out of memory with a single sample or sequence. FailedPrecondition: there is no sample,
  // or the ranks' batches do not fit together. Internal: the ranks' parameters differ afterwards. Others as
  // Collective's. After an error the state is undefined.
  virtual absl::StatusOr<UpdateStats> Update(const Batch& batch, double progress, uint64_t iteration) = 0;

  // Rules by which statistics of Update are watched; each is about one that Update returns. Constant.
  virtual std::vector<WatchRule> WatchRules() const { return {}; }

  // The current policy, for actors.
  virtual v1::PolicySnapshot Snapshot(uint64_t version) const = 0;
  // Current networks and scales, for acting and values on the learner; valid until the next call that is not const.
  struct Acting {
    const ActorCritic* network;
    ObsScale obs_scale;
    ObsScale state_scale;  // Of the global state, if the critic is central.
  };
  virtual Acting acting() const = 0;
  // Values of the last update's samples, float32 [T * M] each, for histograms. Empty before the first update.
  virtual StateTensors SampleStats() const { return {}; }

  // The complete learning state, for checkpoints; names are stable. Tensors are copies.
  virtual StateTensors ModelState() const = 0;      // Weights and normalisers.
  virtual StateTensors OptimizerState() const = 0;  // Moments, step counts, learning rate.
  // InvalidArgument: names or shapes differ from this run's (the message names the first); then nothing has changed.
  virtual absl::Status Restore(const StateTensors& model, const StateTensors& optimizer) = 0;
  // Copies rank 0's state to all ranks. Each rank calls it once after construction and after Restore. Errors as Update.
  virtual absl::Status Synchronize() = 0;
  // XXH3-64 of the parameters' bytes.
  virtual uint64_t ParametersDigest() const = 0;
  // The reducer that sums gradients, with its cost so far; null: a single rank.
  virtual const GradientReducer* reducer() const = 0;
};

}  // namespace skein
