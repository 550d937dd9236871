// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "learner/network/actor_critic.h"
#include "learner/optimize/batch_forward.h"
#include "learner/optimize/minibatch.h"
#include "learner/optimize/minibatch_order.h"
#include "learner/optimize/training_data.h"

namespace skein {

// The training data of a network with a memory: an iteration's rows [T, M], cut into sequences that minibatches are
// made of.   TrainingData -> Sequences -> { Unroll -> values -> Cut targets -> Shuffle -> minibatches } of each epoch
// Sequence k * M + m has the steps from k L on of column m, L at most; the last one of a column may have fewer, and is
// filled up with copies of a step, which are no samples. One that begins with the rows begins with the state that the
// acting policy had there (Batch::first_policy_state); the others begin with a state that Unroll has computed from it.
// The memory of a separate critic begins with the policy's state, too: it has no state of its own between iterations
// (docs/decisions/a-critics-memory-begins-with-the-policys.md).
// Not thread-safe.
class Sequences {
 public:
  struct Options {
    int64_t length = 0;   // L; 0 or more than T: T.
    int64_t burn_in = 0;  // Steps, at most those before the sequence.
  };
  // REQUIRES: the network has a memory; `data`, which must outlive this, is on its device.
  Sequences(const Options& options, const ActorCritic& network, TrainingData* data);

  int64_t length() const { return L_; }

  // Runs the memory through all steps with the current weights, without gradients. Sets what policy and value function
  // read: TrainingData::policy, critic and final_critic. `states`: also where sequences begin.
  void Unroll(bool states, BatchForward* forward);
  // Samples of S sequences, for the loss. By name, with b = burn_in, where it is not 0 and there are steps before:
  //   obs [S, L, O], action and the algorithm's fields; critic_input [S, L, C]: of the critic's own memory; or
  //   global_state [S, L, G]: what a central critic reads beside the policy's memory
  //   begins bool [S, L]: an episode begins with this step;  valid bool [S, L]: is a sample; undefined: all are
  //   memory_state [S, state_size], before the first step, or before burn-in
  //   critic_memory_state [S, state_size], of the critic's own memory
  //   burn_obs [S, b, O], burn_critic_input [S, b, C], burn_begins, burn_skips bool [S, b]: steps before the rows
  Minibatch& samples() { return samples_; }
  // Rows [R, ...] -> [S, L, ...]
  torch::Tensor Cut(const torch::Tensor& rows) const;

  // One epoch's minibatches of at least `minibatch_size` samples, one sequence at least: order.rows are sequences,
  // order.size samples. Errors as Collective's; null: a single rank.
  absl::StatusOr<MinibatchOrder> Shuffle(int64_t minibatch_size, uint64_t seed, uint64_t iteration, uint32_t epoch,
                                         Collective* collective) const;
  // The same minibatches as rows [R].
  MinibatchOrder RowsOf(const MinibatchOrder& sequences) const;

 private:
  // States [S, state_size] in which sequences begin: of a run over all T + 1 steps that began with `first`
  // [M, state_size].
  torch::Tensor StatesAtBegins(const MemoryRun& run, const torch::Tensor& first) const;

  const ActorCritic& network_;
  TrainingData& data_;
  const int64_t T_, M_, L_, pieces_, burn_in_;
  const torch::Tensor obs_, critic_, final_obs_, final_critic_;  // Inputs of the memories; [T+1, M, ...], [K, ...].
  const torch::Tensor first_;                                    // [M, state_size]
  torch::Tensor begins_;                                         // bool [T+1, M]
  torch::Tensor rows_;                                           // int64 [S * L], row of each step.
  torch::Tensor valid_;                                          // bool [S, L] on the CPU; undefined: all.
  Minibatch samples_;
};

}  // namespace skein
