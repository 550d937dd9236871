// SPDX-License-Identifier: Apache-2.0
#include "learner/batch_assembler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

// Copies rows of `width` values each to `to` and on, `stride` apart; `check(row of values)` returns the first that is
// bad, or `width`.
template <typename Value, typename Check>
absl::Status PlaceRows(const char* name, PieceReader from, int64_t rows, int64_t width, int64_t stride, Value* to,
                       const char* wrong, Check check) {
  for (int64_t t = 0; t < rows; ++t, to += stride) {
    from.Read(to, width * sizeof(Value));
    if (const int64_t bad = check(to); bad < width) {
      return TensorError(name, absl::StrCat("element ", t * width + bad, " is ", wrong));
    }
  }
  return absl::OkStatus();
}

absl::Status PlaceFloats(const char* name, const PieceReader& from, int64_t rows, int64_t width, int64_t stride,
                         float* to) {
  return PlaceRows(name, from, rows, width, stride, to, "not finite",
                   [width](const float* row) { return static_cast<int64_t>(FindNotFinite(row, width)); });
}

}  // namespace

StagedBatch::StagedBatch(const BatchShape& fragment_shape, int64_t slots, int64_t segments)
    : slots_(slots),
      segments_(segments),
      F_(fragment_shape.steps),
      T_(fragment_shape.steps * segments),
      E_(fragment_shape.num_envs),
      N_(fragment_shape.num_envs * slots),
      A_(fragment_shape.spec.num_agents()),
      O_(fragment_shape.spec.obs_size()),
      D_(fragment_shape.spec.discrete() ? 1 : fragment_shape.spec.action_size()),
      discrete_(fragment_shape.spec.discrete()),
      choices_(fragment_shape.spec.action_size()),
      varying_(slots * segments) {
  const int64_t M = columns();
  obs.resize((T_ + 1) * M * O_);
  if (discrete_) {
    action_index.resize(T_ * M);
  } else {
    action.resize(T_ * M * D_);
  }
  log_prob.resize(T_ * M);
  reward.resize(T_ * M);
  terminated.resize(T_ * M);
  truncated.resize(T_ * M);
}

absl::Status StagedBatch::Place(int64_t slot, int64_t segment, const CheckedBatch& batch) {
  const int64_t M = columns(), W = E_ * A_, start = segment * F_;
  const int64_t first = start * M + slot * W;  // Of the fragment's first row, in elements of width 1.
  absl::Status s = PlaceFloats("obs", batch.obs, F_ + 1, W * O_, M * O_, obs.data() + first * O_);
  if (s.ok() && discrete_) {
    const auto out_of_range = [this, W](const int64_t* row) {
      return std::find_if(row, row + W, [this](int64_t choice) { return choice < 0 || choice >= choices_; }) - row;
    };
    s = PlaceRows("action", batch.action, F_, W, M, action_index.data() + first, "no choice of this environment",
                  out_of_range);
  } else if (s.ok()) {
    s = PlaceFloats("action", batch.action, F_, W * D_, M * D_, action.data() + first * D_);
  }
  if (s.ok()) s = PlaceFloats("log_prob", batch.log_prob, F_, W, M, log_prob.data() + first);
  if (s.ok()) s = PlaceFloats("reward", batch.reward, F_, W, M, reward.data() + first);
  if (!s.ok()) return s;

  Varying& varying = varying_[slot * segments_ + segment];
  varying = {};
  int64_t truncation = 0;
  for (int64_t t = 0; t < F_; ++t) {
    for (int64_t e = 0; e < E_; ++e) {
      const int64_t from = t * E_ + e, to = first + t * M + e * A_;
      for (int64_t a = 0; a < A_; ++a) {
        terminated[to + a] = batch.terminated[from];
        truncated[to + a] = batch.truncated[from];
      }
      if (!batch.truncated[from]) continue;
      const float* row = batch.final_obs.data() + truncation++ * A_ * O_;
      varying.final_obs.insert(varying.final_obs.end(), row, row + A_ * O_);
      for (int64_t a = 0; a < A_; ++a) varying.final_index.push_back(to + a);
    }
  }
  varying.episode_return.assign(batch.episode_return.begin(), batch.episode_return.end());
  varying.episode_length = batch.episode_length;
  return absl::OkStatus();
}

void StagedBatch::Seal() {
  final_obs.clear();
  final_index.clear();
  episode_return.clear();
  episode_length.clear();
  for (const Varying& piece : varying_) {
    final_obs.insert(final_obs.end(), piece.final_obs.begin(), piece.final_obs.end());
    final_index.insert(final_index.end(), piece.final_index.begin(), piece.final_index.end());
    episode_return.insert(episode_return.end(), piece.episode_return.begin(), piece.episode_return.end());
    episode_length.insert(episode_length.end(), piece.episode_length.begin(), piece.episode_length.end());
  }
}

}  // namespace skein
