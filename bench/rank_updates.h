// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "bench/statistics.h"
#include "skein/v1/config.pb.h"

namespace skein {

// One learner rank's updates of a synthetic batch, with the others and without them.
// Not thread-safe: all calls from one thread.
class RankUpdates {
 public:
  struct Place {
    int rank = 0;
    int ranks = 1;
    int store_port = 0;                     // Of rank 0, on this machine; unused on rank 0.
    std::function<void(int port)> serving;  // Rank 0: is told its port, before the others are waited for.
  };
  enum class Mode {
    kAlone,    // As a single learner.
    kSumming,  // Each rank its part of one batch, `ranks` times as large, in minibatches `ranks` times as large.
  };

  // Meets the other ranks. `config` is that of a single learner: its steps_per_iteration and minibatch_size are what
  // each rank has. Errors as Collective's, Trainer::Make's and MakeSyntheticBatch's.
  static absl::StatusOr<std::unique_ptr<RankUpdates>> Make(const v1::RunConfig& config, const Place& place);
  ~RankUpdates();

  // So many updates, begun when all ranks are there. All ranks make the same calls. What this rank has to say of them:
  // seconds, samples (times epochs), updates, gradient_steps, device; where gradients were summed, all_reduces,
  // bytes_sent, all_reduce_seconds and exposed_seconds, as GradientReducer::Cost. Errors as Trainer::Update's.
  absl::StatusOr<Json> Run(Mode mode, int64_t updates);

 private:
  struct Impl;
  explicit RankUpdates(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
