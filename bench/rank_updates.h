// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "bench/rank_place.h"
#include "bench/statistics.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Runs one learner rank's updates on a synthetic batch, together with the other ranks or alone. Not thread-safe: all
// calls from one thread.
class RankUpdates {
 public:
  // Connects to the other ranks. `config` is that of a single learner: its steps_per_iteration and minibatch_size apply
  // to each rank; with summing it trains on its part of a batch and minibatches `ranks` times as large. Errors as
  // Collective, Trainer::Make and MakeSyntheticBatch.
  static absl::StatusOr<std::unique_ptr<RankUpdates>> Make(const v1::RunConfig& config, const RankPlace& place);
  ~RankUpdates();

  // Runs `updates` updates, starting when all ranks are ready. All ranks must make the same calls. Returns this rank's
  // seconds, samples (times epochs), updates, gradient_steps, device; with summing also all_reduces, bytes_sent,
  // all_reduce_seconds and exposed_seconds, as GradientReducer::Cost. Errors as Trainer::Update.
  absl::StatusOr<Json> Run(RankMode mode, int64_t updates);

 private:
  struct Impl;
  explicit RankUpdates(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
