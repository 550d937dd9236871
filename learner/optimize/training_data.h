// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "learner/network/actor_critic.h"
#include "learner/optimize/batch.h"
#include "learner/optimize/device_copy.h"
#include "learner/optimize/minibatch.h"
#include "learner/optimize/minibatch_order.h"
#include "learner/optimize/normalizers.h"

namespace skein {

// One iteration's data where training takes them from, observations normalised with the statistics before this batch
// (those that the behaviour policy had), rows flattened: R = T * M.   Batch -> Prepare -> TrainingData -> minibatches
struct TrainingData {
  const Batch& batch;
  RowShare share;
  torch::Tensor critic;        // What the value function reads, [R + M, C].
  torch::Tensor final_critic;  // [K, C]
  Minibatch samples;           // [R]: obs, action, log_prob and, for a central critic, critic_input.
  torch::Tensor active;        // bool [R]; undefined = all.

  // An epoch's minibatches of the samples that are active. Errors as Collective's; null: a single rank.
  absl::StatusOr<MinibatchOrder> Shuffle(int64_t minibatch_size, uint64_t seed, uint64_t iteration, uint32_t epoch,
                                         Collective* collective) const;
};

// `batch` must outlive the result. `copier` brings what is in host memory to `device`; null: it stays there.
TrainingData PrepareData(const Batch& batch, const ActorCriticOptions& network, const Normalizers& normalizers,
                         torch::Device device, DeviceCopier* copier);

}  // namespace skein
