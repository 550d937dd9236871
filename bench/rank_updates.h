// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "bench/statistics.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Runs one learner rank's updates on a synthetic batch, together with the other ranks or alone. Not thread-safe: all
// calls from one thread.
class RankUpdates {
 public:
  struct Place {
    int rank = 0;
    int ranks = 1;
    int store_port = 0;                     // Of rank 0, on this machine; unused on rank 0.
    std::function<void(int port)> serving;  // Rank 0: called with its port before it waits for the others.
  };
  enum class Mode {
    kAlone,    // As a single learner.
    kSumming,  // Each rank trains on its part of a batch and minibatches `ranks` times as large.
  };

  // Connects to the other ranks. `config` is that of a single learner: its steps_per_iteration and minibatch_size apply
  // to each rank. Errors as Collective, Trainer::Make and MakeSyntheticBatch.
  static absl::StatusOr<std::unique_ptr<RankUpdates>> Make(const v1::RunConfig& config, const Place& place);
  ~RankUpdates();

  // Runs `updates` updates, starting when all ranks are ready. All ranks must make the same calls. Returns this rank's
  // seconds, samples (times epochs), updates, gradient_steps, device; with summing also all_reduces, bytes_sent,
  // all_reduce_seconds and exposed_seconds, as GradientReducer::Cost. Errors as Trainer::Update.
  absl::StatusOr<Json> Run(Mode mode, int64_t updates);

 private:
  struct Impl;
  explicit RankUpdates(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
