// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/batch_assembler.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/number/number_bounds.h"

namespace skein {
namespace {

// Copies rows of `width` numbers each to `to` and on, `stride` apart, all of them within bounds.
absl::Status PlaceFloats(const char* name, FloatReader from, int64_t rows, int64_t width, int64_t stride, float* to) {
  const auto bad = static_cast<int64_t>(from.ReadRows(rows, width, stride, kNumberBound, to));
  if (bad == rows * width) return absl::OkStatus();
  return BeyondError(name, bad, to[bad / width * stride + bad % width], kNumberBound);
}

// The same of whole numbers, each the index of one of `choices`.
absl::Status PlaceChoices(PieceReader from, int64_t rows, int64_t width, int64_t stride, int64_t choices, int64_t* to) {
  for (int64_t t = 0; t < rows; ++t, to += stride) {
    from.Read(to, width * sizeof(int64_t));
    const int64_t bad =
        std::find_if(to, to + width, [choices](int64_t choice) { return choice < 0 || choice >= choices; }) - to;
    if (bad < width) {
      return TensorError("action", absl::StrCat("element ", t * width + bad, " is no choice of this environment"));
    }
  }
  return absl::OkStatus();
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

StagedBatch::StagedBatch(const FragmentShape& fragment_shape, int64_t slots, int64_t segments)
    : slots_(slots),
      segments_(segments),
      F_(fragment_shape.steps),
      T_(fragment_shape.steps * segments),
      E_(fragment_shape.num_envs),
      A_(fragment_shape.spec.num_agents()),
      O_(fragment_shape.spec.obs_size()),
      D_(fragment_shape.spec.discrete() ? 1 : fragment_shape.spec.action_size()),
      G_(fragment_shape.spec.global_state_size()),
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
  if (A_ > 1) active.resize(T_ * M);
  state.resize((T_ + 1) * num_envs() * G_);
}

int64_t StagedBatch::samples() const {
  return active.empty() ? T_ * columns() : std::count(active.begin(), active.end(), uint8_t{1});
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
  KeepColumns(kept_, T_, slots_, W, &active);
  KeepColumns(kept_, T_ + 1, slots_, E_ * G_, &state);
}

absl::Status StagedBatch::Place(int64_t slot, int64_t segment, const CheckedBatch& batch) {
  const int64_t M = columns(), W = E_ * A_, start = segment * F_;
  const int64_t first = start * M + slot * W;  // Of the fragment's first row, in elements of width 1.
  absl::Status s = PlaceFloats("obs", batch.obs, F_ + 1, W * O_, M * O_, obs.data() + first * O_);
  if (s.ok() && discrete_) {
    s = PlaceChoices(batch.action, F_, W, M, choices_, action_index.data() + first);
  } else if (s.ok()) {
    s = PlaceFloats("action", {batch.action, false}, F_, W * D_, M * D_, action.data() + first * D_);
  }
  if (s.ok()) s = PlaceFloats("log_prob", {batch.log_prob, false}, F_, W, M, log_prob.data() + first);
  if (s.ok()) s = PlaceFloats("reward", {batch.reward, false}, F_, W, M, reward.data() + first);
  if (s.ok() && G_ > 0) {
    const int64_t row = num_envs() * G_;
    s = PlaceFloats("state", batch.state, F_ + 1, E_ * G_, row, state.data() + start * row + slot * E_ * G_);
  }
  if (!s.ok()) return s;

  Varying& varying = varying_[slot * segments_ + segment];
  varying = {};
  int64_t truncation = 0;
  for (int64_t t = 0; t < F_; ++t) {
    PlaceEnds(batch, t, first + t * M);
    const uint8_t* const cut = batch.truncated.data() + t * E_;
    if (std::memchr(cut, 1, E_) == nullptr) continue;
    for (int64_t e = 0; e < E_; ++e) {
      if (!cut[e]) continue;
      const float* const row = batch.final_obs.data() + truncation * A_ * O_;
      varying.final_obs.insert(varying.final_obs.end(), row, row + A_ * O_);
      const float* const state_row = batch.final_state.data() + truncation * G_;
      varying.final_state.insert(varying.final_state.end(), state_row, state_row + G_);
      ++truncation;
      for (int64_t a = 0; a < A_; ++a) varying.final_index.push_back((t * E_ + e) * A_ + a);
    }
  }
  varying.episode_return.assign(batch.episode_return.begin(), batch.episode_return.end());
  varying.episode_length = batch.episode_length;
  varying.episode_metrics = batch.episode_metrics;
  return absl::OkStatus();
}

void StagedBatch::PlaceEnds(const CheckedBatch& batch, int64_t t, int64_t row) {
  const uint8_t* const ended = batch.terminated.data() + t * E_;
  const uint8_t* const cut = batch.truncated.data() + t * E_;
  if (A_ == 1) {
    std::memcpy(terminated.data() + row, ended, E_);
    std::memcpy(truncated.data() + row, cut, E_);
    return;
  }
  for (int64_t i = 0; i < E_ * A_; ++i) {
    const int64_t agent = t * E_ * A_ + i;
    active[row + i] = batch.active[agent];
    terminated[row + i] = batch.agent_terminated[agent];
    truncated[row + i] = cut[i / A_] && batch.active[agent] && !batch.agent_terminated[agent];
  }
}

void StagedBatch::Seal() {
  final_obs.clear();
  final_index.clear();
  final_state.clear();
  episode_metrics.clear();
  episode_return.clear();
  episode_length.clear();
  const int64_t M = columns(), W = E_ * A_;
  for (size_t k = 0; k < kept_.size(); ++k) {
    for (int64_t segment = 0; segment < segments_; ++segment) {
      const Varying& piece = varying_[kept_[k] * segments_ + segment];
      const int64_t first = segment * F_ * M + static_cast<int64_t>(k) * W;
      for (int64_t index : piece.final_index) final_index.push_back(first + index / W * M + index % W);
      final_obs.insert(final_obs.end(), piece.final_obs.begin(), piece.final_obs.end());
      final_state.insert(final_state.end(), piece.final_state.begin(), piece.final_state.end());
      episode_metrics.insert(episode_metrics.end(), piece.episode_metrics.begin(), piece.episode_metrics.end());
      episode_return.insert(episode_return.end(), piece.episode_return.begin(), piece.episode_return.end());
      episode_length.insert(episode_length.end(), piece.episode_length.begin(), piece.episode_length.end());
    }
  }
}

}  // namespace skein
