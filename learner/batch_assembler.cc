// SPDX-License-Identifier: Apache-2.0
#include "learner/batch_assembler.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

// Copies rows of `width` values each to `to` and on, `stride` apart; `check(row of values)` returns the first that is
// bad, or `width`.
template <typename Reader, typename Value, typename Check>
absl::Status PlaceRows(const char* name, Reader from, int64_t rows, int64_t width, int64_t stride, Value* to,
                       const char* wrong, Check check) {
  for (int64_t t = 0; t < rows; ++t, to += stride) {
    from.Read(to, width * sizeof(Value));
    if (const int64_t bad = check(to); bad < width) {
      return TensorError(name, absl::StrCat("element ", t * width + bad, " is ", wrong));
    }
  }
  return absl::OkStatus();
}

template <typename Reader>
absl::Status PlaceFloats(const char* name, const Reader& from, int64_t rows, int64_t width, int64_t stride, float* to) {
  return PlaceRows(name, from, rows, width, stride, to, "not finite",
                   [width](const float* row) { return static_cast<int64_t>(FindNotFinite(row, width)); });
}

// Of `rows` rows of `slots` x `width` values, leaves those of `kept`.
template <typename Value>
void KeepColumns(const std::vector<int64_t>& kept, int64_t rows, int64_t slots, int64_t width,
                 std::vector<Value>* values) {
  if (values->empty()) return;
  Value* to = values->data();
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t slot : kept) {
      const Value* from = values->data() + (t * slots + slot) * width;
      if (from != to) std::copy(from, from + width, to);
      to += width;
    }
  }
  values->resize(to - values->data());
}

}  // namespace

StagedBatch::StagedBatch(const BatchShape& fragment_shape, int64_t slots, int64_t segments)
    : slots_(slots),
      segments_(segments),
      F_(fragment_shape.steps),
      T_(fragment_shape.steps * segments),
      E_(fragment_shape.num_envs),
      A_(fragment_shape.spec.num_agents()),
      O_(fragment_shape.spec.obs_size()),
      D_(fragment_shape.spec.discrete() ? 1 : fragment_shape.spec.action_size()),
      discrete_(fragment_shape.spec.discrete()),
      choices_(fragment_shape.spec.action_size()),
      varying_(slots * segments) {
  Reset();
}

void StagedBatch::Reset() {
  kept_.resize(slots_);
  std::iota(kept_.begin(), kept_.end(), int64_t{0});
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

void StagedBatch::Keep(std::vector<int64_t> slots) {
  kept_ = std::move(slots);
  if (static_cast<int64_t>(kept_.size()) == slots_) return;
  const int64_t W = E_ * A_;
  KeepColumns(kept_, T_ + 1, slots_, W * O_, &obs);
  KeepColumns(kept_, T_, slots_, W * D_, &action);
  KeepColumns(kept_, T_, slots_, W, &action_index);
  KeepColumns(kept_, T_, slots_, W, &log_prob);
  KeepColumns(kept_, T_, slots_, W, &reward);
  KeepColumns(kept_, T_, slots_, W, &terminated);
  KeepColumns(kept_, T_, slots_, W, &truncated);
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
      for (int64_t a = 0; a < A_; ++a) varying.final_index.push_back(from * A_ + a);
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
  const int64_t M = columns(), W = E_ * A_;
  for (size_t k = 0; k < kept_.size(); ++k) {
    for (int64_t segment = 0; segment < segments_; ++segment) {
      const Varying& piece = varying_[kept_[k] * segments_ + segment];
      const int64_t first = segment * F_ * M + static_cast<int64_t>(k) * W;
      for (int64_t index : piece.final_index) final_index.push_back(first + index / W * M + index % W);
      final_obs.insert(final_obs.end(), piece.final_obs.begin(), piece.final_obs.end());
      episode_return.insert(episode_return.end(), piece.episode_return.begin(), piece.episode_return.end());
      episode_length.insert(episode_length.end(), piece.episode_length.begin(), piece.episode_length.end());
    }
  }
}

}  // namespace skein
