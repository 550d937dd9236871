// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/network/normalizer.h"
#include "learner/optimize/batch.h"
#include "learner/ranks/collective.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Statistics of all ranks' observations, global states and returns, clipped (Winsorize), as model.normalize_* selects.
// Data with a value that is not finite are skipped. Equal bits on all ranks. Not thread-safe. Errors as Collective's.
class Normalizers {
 public:
  // `state_size` 0: there is no global state. `collective` must outlive this; null: a single rank.
  Normalizers(const v1::ModelConfig& config, int64_t obs_size, int64_t state_size, Collective* collective);

  bool has_state() const { return has_state_; }
  ObsScale obs_scale() const;
  ObsScale state_scale() const;  // Of the global state.
  // Return = return_scale() * output of the value net.
  double return_scale() const;

  // Adds the samples' observations and the global states. active bool [T * M]; undefined = all.
  absl::Status CountObservations(const Batch& batch, const torch::Tensor& active);
  // Adds returns. Returns the share of their variance that `value` explains. Both float32 [R].
  absl::StatusOr<double> CountReturns(const torch::Tensor& returns, const torch::Tensor& value);

  // For checkpoints: "<obs|return|state>_normalizer.<count|mean|variance>".
  void AppendTo(StateTensors* state) const;
  // REQUIRES: from index `first`, `state` has the names and shapes that AppendTo appends.
  void Restore(const StateTensors& state, size_t first);

 private:
  // Adds `rows` [B, *] to `moments`, unless some value of `all` is not finite.
  absl::Status CountRows(const torch::Tensor& rows, const torch::Tensor& all, RunningMoments* moments);

  const bool normalizes_observations_, normalizes_returns_, has_state_;
  Collective* const collective_;
  RunningMoments obs_, state_, return_;
};

}  // namespace skein
