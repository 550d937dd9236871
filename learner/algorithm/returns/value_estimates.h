// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "absl/status/statusor.h"
#include "learner/algorithm/returns/advantage.h"
#include "learner/optimize/batch_forward.h"
#include "learner/optimize/normalizers.h"
#include "learner/optimize/training_data.h"

namespace skein {

// Values of the current value function for a batch of R = T * M rows, on the batch's device.
struct ValueEstimates {
  torch::Tensor value;   // float32 [R], V(s_t) in the value net's units.
  double scale;          // value * scale is in the reward's units. All of `input` is in the reward's units.
  AdvantageInput input;  // [T, M]; with posthumous credit (posthumous_reward.h) if the batch has an alive mask.
};

// Errors as BatchForward's.
absl::StatusOr<ValueEstimates> EstimateValues(const TrainingData& data, const Normalizers& normalizers, double gamma,
                                              BatchForward* forward);

}  // namespace skein
