// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/rank_place.h"
#include "bench/statistics.h"
#include "skein/v1/fit.pb.h"

namespace skein {

// Runs the gradient steps of one rank of `skein fit`, together with the other ranks or alone. Without Torch in the
// header. Not thread-safe.
class FitRankSteps {
 public:
  // `config` is that of a single rank: its batch_size and parts apply to each; with summing all train on a batch, and
  // in parts, `ranks` times as many. `store_path`: FitData's. Errors as SequenceStore::Open, FitTrainer::Make and
  // ConnectRanks.
  static absl::StatusOr<std::unique_ptr<FitRankSteps>> Make(const v1::FitConfig& config, const std::string& store_path,
                                                            const RankPlace& place);
  ~FitRankSteps();

  // `steps` steps, beginning when all ranks are ready. All ranks must make the same calls. Returns this rank's seconds,
  // tokens (with summing its share of the batches'), updates (steps), data_wait_seconds, device. Errors as
  // FitTrainer::Step.
  absl::StatusOr<Json> Run(RankMode mode, int64_t steps);

 private:
  struct Impl;
  explicit FitRankSteps(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
