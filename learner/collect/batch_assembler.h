// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "learner/collect/admission.h"

namespace skein {

// The trajectories of one update, put together from fragments of F steps x E environments: `slots` beside each other
// (M = slots * E * A columns, fewer after Keep), `segments` one after the other (T = segments * F steps).
// Buffers are reused. One thread per slot may Place at the same time; everything else by one thread while nobody
// places, in the order Reset, Place, Keep, Seal.
class StagedBatch {
 public:
  // `fragment_shape` is that of one trajectory batch.
  StagedBatch(const FragmentShape& fragment_shape, int64_t slots, int64_t segments = 1);

  // Copies a checked batch to its place (no lock needed against other slots). What a slot's segments say about the
  // observation where they meet is the same. InvalidArgument: a real number is beyond kNumberBound, or a choice out of
  // range; the place then holds what another Place overwrites.
  absl::Status Place(int64_t slot, int64_t segment, const CheckedBatch& batch);
  // The slots that are not among `slots` (ascending) have nothing: the others' columns move together.
  void Keep(std::vector<int64_t> slots);
  // Makes room for all slots again.
  void Reset();
  // Joins what fragments brought in varying number, in order of slot and segment, into final_obs, final_index and the
  // episodes.
  void Seal();

  int64_t steps() const { return T_; }
  int64_t columns() const { return num_envs() * A_; }
  int64_t num_envs() const { return static_cast<int64_t>(kept_.size()) * E_; }
  int64_t samples() const;                                     // Steps of agents that took part.
  int64_t fragments() const { return slots_ * segments_; }     // There is room for.
  const std::vector<int64_t>& slots() const { return kept_; }  // That have columns, ascending.

  std::vector<float> obs;             // [T+1, M, O]
  std::vector<float> action;          // [T, M, D]; empty if discrete
  std::vector<int64_t> action_index;  // [T, M]; empty if continuous
  std::vector<float> log_prob;        // [T, M]
  std::vector<float> reward;          // [T, M]
  std::vector<uint8_t> terminated;    // [T, M], the agent's part of the episode ended in a terminal state
  std::vector<uint8_t> truncated;     // [T, M], the episode was cut while the agent took part
  std::vector<uint8_t> active;        // [T, M], the agent took part; empty if A = 1
  std::vector<float> state;           // [T+1, M / A, G]
  // After Seal(). Truncated episodes have a row for each agent, and a state for all of them.
  std::vector<float> final_obs;        // [K, O]
  std::vector<int64_t> final_index;    // [K], t * M + column
  std::vector<float> final_state;      // [K / A, G]
  std::vector<double> episode_return;  // [episodes]
  std::vector<int64_t> episode_length;
  std::vector<float> episode_metrics;  // [episodes, P]

 private:
  struct Varying {
    std::vector<float> final_obs;
    std::vector<int64_t> final_index;  // Row and column in the fragment: t * E * A + column.
    std::vector<float> final_state;
    std::vector<double> episode_return;
    std::vector<int64_t> episode_length;
    std::vector<float> episode_metrics;
  };
  // How episodes ended in step t of a fragment, and who took part, to a row that begins at element `row`.
  void PlaceEnds(const CheckedBatch& batch, int64_t t, int64_t row);

  const int64_t slots_, segments_;
  const int64_t F_, T_, E_, A_, O_, D_, G_;
  const bool discrete_;
  const int64_t choices_;         // Of a discrete action.
  std::vector<Varying> varying_;  // [slots, segments]
  std::vector<int64_t> kept_;     // Slots that have columns.
};

}  // namespace skein
