// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "absl/status/statusor.h"
#include "learner/algorithm/returns/advantage.h"
#include "learner/optimize/batch_forward.h"
#include "learner/optimize/normalizers.h"
#include "learner/optimize/training_data.h"

namespace skein {

// What the value function says of a batch now, R = T * M rows, on the batch's device.
struct ValueEstimates {
  torch::Tensor value;   // float32 [R], V(s_t) in the value net's units.
  double scale;          // Times this they are in the reward's units, as all in `input`.
  AdvantageInput input;  // [T, M]; rewards with posthumous credit where agents come and go.
};

// Errors as BatchForward's.
absl::StatusOr<ValueEstimates> EstimateValues(const TrainingData& data, const Normalizers& normalizers, double gamma,
                                              BatchForward* forward);

}  // namespace skein
