// SPDX-License-Identifier: Apache-2.0
#include "learner/batch_assembler.h"

#include <algorithm>

namespace skein {
namespace {

// Copies T rows of `width` values each from a contiguous block to column `offset` of rows `stride` wide.
template <typename Value>
void PlaceRows(const Value* from, int64_t rows, int64_t width, int64_t offset, int64_t stride, Value* to) {
  for (int64_t t = 0; t < rows; ++t) std::copy_n(from + t * width, width, to + t * stride + offset);
}

}  // namespace

StagedBatch::StagedBatch(const BatchShape& block_shape, int64_t num_blocks)
    : T_(block_shape.steps),
      E_(block_shape.num_envs),
      N_(block_shape.num_envs * num_blocks),
      A_(block_shape.spec.num_agents()),
      O_(block_shape.spec.obs_size()),
      D_(block_shape.spec.discrete() ? 1 : block_shape.spec.action_size()),
      discrete_(block_shape.spec.discrete()),
      blocks_(num_blocks) {
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

void StagedBatch::Place(int64_t block, const CheckedBatch& batch) {
  const int64_t M = columns(), W = E_ * A_, first = block * W;
  PlaceRows(batch.obs, T_ + 1, W * O_, first * O_, M * O_, obs.data());
  if (discrete_) {
    PlaceRows(batch.action_index, T_, W, first, M, action_index.data());
  } else {
    PlaceRows(batch.action, T_, W * D_, first * D_, M * D_, action.data());
  }
  PlaceRows(batch.log_prob, T_, W, first, M, log_prob.data());
  PlaceRows(batch.reward, T_, W, first, M, reward.data());

  Varying& varying = blocks_[block];
  varying = {};
  int64_t truncation = 0;
  for (int64_t t = 0; t < T_; ++t) {
    for (int64_t e = 0; e < E_; ++e) {
      const int64_t from = t * E_ + e, to = t * M + first + e * A_;
      std::fill_n(terminated.data() + to, A_, batch.terminated[from]);
      std::fill_n(truncated.data() + to, A_, batch.truncated[from]);
      if (!batch.truncated[from]) continue;
      const float* row = batch.final_obs + truncation++ * A_ * O_;
      varying.final_obs.insert(varying.final_obs.end(), row, row + A_ * O_);
      for (int64_t a = 0; a < A_; ++a) varying.final_index.push_back(to + a);
    }
  }
  varying.episode_return.assign(batch.episode_return, batch.episode_return + batch.num_episodes);
  varying.episode_length.assign(batch.episode_length, batch.episode_length + batch.num_episodes);
}

void StagedBatch::Seal() {
  final_obs.clear();
  final_index.clear();
  episode_return.clear();
  episode_length.clear();
  for (const Varying& block : blocks_) {
    final_obs.insert(final_obs.end(), block.final_obs.begin(), block.final_obs.end());
    final_index.insert(final_index.end(), block.final_index.begin(), block.final_index.end());
    episode_return.insert(episode_return.end(), block.episode_return.begin(), block.episode_return.end());
    episode_length.insert(episode_length.end(), block.episode_length.begin(), block.episode_length.end());
  }
}

}  // namespace skein
