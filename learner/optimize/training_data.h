// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "learner/network/actor_critic.h"
#include "learner/optimize/batch.h"
#include "learner/optimize/device_copy.h"
#include "learner/optimize/minibatch.h"
#include "learner/optimize/minibatch_order.h"
#include "learner/optimize/normalizers.h"

namespace skein {

// One iteration's data, prepared for the networks and the loss. Observations are normalised with the statistics before
// this batch (the behaviour policy's). Rows are flattened: R = T * M.
// Batch -> PrepareData -> TrainingData -> minibatches
// With a memory, Sequences sets the networks' inputs and makes the minibatches.
struct TrainingData {
  const Batch& batch;
  RowShare share;
  torch::Tensor policy;        // Input of the policy, [R, O].
  torch::Tensor critic;        // Input of the value function, [R + M, C].
  torch::Tensor final_critic;  // [K, C]
  Minibatch samples;           // [R]: obs, action; the algorithm's fields; critic_input, for a central critic.
  torch::Tensor active;        // bool [R]; undefined = all.

  // One epoch's minibatches of the active samples. Errors as Collective's; null: a single rank.
  absl::StatusOr<MinibatchOrder> Shuffle(int64_t minibatch_size, uint64_t seed, uint64_t iteration, uint32_t epoch,
                                         Collective* collective) const;
};

// `batch` must outlive the result. `fields`: those of the batch, [T, M] or [T, M, width], that become samples because
// the algorithm reads them. `copier` copies host tensors to `device`; null: they stay in host memory.
TrainingData PrepareData(const Batch& batch, const std::vector<std::string>& fields, const ActorCriticOptions& network,
                         const Normalizers& normalizers, torch::Device device, DeviceCopier* copier);

}  // namespace skein
