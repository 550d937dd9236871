// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "absl/status/statusor.h"
#include "learner/network/actor_critic.h"
#include "learner/optimize/batch_forward.h"
#include "learner/optimize/normalizers.h"
#include "learner/optimize/training_data.h"
#include "learner/ranks/collective.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Training targets of one epoch's samples, float32 [R] on the batch's device.
struct PpoTargets {
  torch::Tensor advantage, old_value, value_target;
  double explained_variance = 0;
  double vtrace_rho = 1;  // Mean clipped importance weight; 1 when on-policy.
};

// Computes them by generalised advantage estimation or, in mode async, V-trace. It uses `normalizers` and afterwards
// adds the returns to their statistics. Errors as BatchForward's and Collective's; null `collective`: a single rank.
absl::StatusOr<PpoTargets> ComputePpoTargets(const v1::RunConfig& config, const TrainingData& data,
                                             const ActorCritic& network, Collective* collective, BatchForward* forward,
                                             Normalizers* normalizers);

}  // namespace skein
