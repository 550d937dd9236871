// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "skein/v1/config.pb.h"

// PPO's loss as a function of tensors, with its terms and coefficients.
namespace skein {

// Bound of |log ratio| in the loss; regular training stays far below it. A sample beyond it has no gradient, so that a
// wrong log-probability cannot make the loss infinite.
inline constexpr double kLogRatioBound = 20;

struct LossTerms {
  torch::Tensor total;   // policy + value_coefficient * value - entropy_coefficient * entropy
  torch::Tensor policy;  // -mean(min(ratio A, clip(ratio) A))
  torch::Tensor value;   // mean squared error (clipped variant if value_clip > 0), without factor 1/2
  torch::Tensor entropy;
  torch::Tensor kl;             // mean((ratio - 1) - log ratio), Schulman's k3 estimator; no gradient
  torch::Tensor clip_fraction;  // share of |ratio - 1| > clip; no gradient
};

// Scheduled values that replace the configuration's where defined: float32 [] on the minibatch's device.
struct LossCoefficients {
  torch::Tensor min_ratio, max_ratio;  // 1 - clip and 1 + clip
  torch::Tensor clip, entropy;
};

// Pure: the loss of one minibatch, Schulman et al. 2017, eq. 9. All of size [B]; old_value only used if value_clip > 0;
// value_target in the value net's units. `coefficients` equal to config's values give the same result up to rounding.
LossTerms PpoLoss(const torch::Tensor& new_log_prob, const torch::Tensor& old_log_prob, const torch::Tensor& advantage,
                  const torch::Tensor& new_value, const torch::Tensor& old_value, const torch::Tensor& value_target,
                  const torch::Tensor& entropy, const v1::PpoConfig& config, const LossCoefficients& coefficients = {});

// LossTerms as numbers.
struct PpoLossValues {
  double total = 0, policy = 0, value = 0, entropy = 0, kl = 0, clip_fraction = 0;

  PpoLossValues& operator+=(const PpoLossValues& other);
};

}  // namespace skein
