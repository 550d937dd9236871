// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "learner/admission.h"

namespace skein {

// One iteration's trajectories in env-index order, whatever order they arrived in. N environments, M = N * A columns.
// Buffers are reused from iteration to iteration. One thread per block may Place at the same time; everything else by
// one thread while nobody places.
class StagedBatch {
 public:
  // `block_shape` is that of one trajectory batch; the iteration has `num_blocks` of them.
  StagedBatch(const BatchShape& block_shape, int64_t num_blocks);

  // Copies a checked batch to the place of its block (no lock needed against other blocks).
  void Place(int64_t block, const CheckedBatch& batch);
  // Joins what blocks brought in varying number, in block order, into final_obs, final_index and the episodes.
  void Seal();

  int64_t steps() const { return T_; }
  int64_t columns() const { return N_ * A_; }
  int64_t num_envs() const { return N_; }

  std::vector<float> obs;             // [T+1, M, O]
  std::vector<float> action;          // [T, M, D]; empty if discrete
  std::vector<int64_t> action_index;  // [T, M]; empty if continuous
  std::vector<float> log_prob;        // [T, M]
  std::vector<float> reward;          // [T, M]
  std::vector<uint8_t> terminated;    // [T, M], the same for all agents of an environment
  std::vector<uint8_t> truncated;     // [T, M]
  // After Seal():
  std::vector<float> final_obs;      // [K, O]
  std::vector<int64_t> final_index;  // [K], t * M + column
  std::vector<double> episode_return;
  std::vector<int64_t> episode_length;

 private:
  struct Varying {
    std::vector<float> final_obs;
    std::vector<int64_t> final_index;
    std::vector<double> episode_return;
    std::vector<int64_t> episode_length;
  };
  const int64_t T_, E_, N_, A_, O_, D_;
  const bool discrete_;
  std::vector<Varying> blocks_;
};

}  // namespace skein
