// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo/ppo_loss.h"

#include <torch/types.h>
#include <torch/utils.h>

namespace skein {

LossTerms PpoLoss(const torch::Tensor& new_log_prob, const torch::Tensor& old_log_prob, const torch::Tensor& advantage,
                  const torch::Tensor& new_value, const torch::Tensor& old_value, const torch::Tensor& value_target,
                  const torch::Tensor& entropy, const v1::PpoConfig& config, const LossCoefficients& coefficients) {
  const bool given = coefficients.clip.defined();
  LossTerms terms;
  const torch::Tensor log_ratio = (new_log_prob - old_log_prob).clamp(-kLogRatioBound, kLogRatioBound);
  const torch::Tensor ratio = log_ratio.exp();
  const torch::Tensor clipped_ratio = given ? ratio.clamp(coefficients.min_ratio, coefficients.max_ratio)
                                            : ratio.clamp(1.0 - config.clip(), 1.0 + config.clip());
  terms.policy = -torch::min(ratio * advantage, clipped_ratio * advantage).mean();

  torch::Tensor square = (new_value - value_target).square();
  if (config.value_clip() > 0) {
    const torch::Tensor clipped_value =
        old_value + (new_value - old_value).clamp(-config.value_clip(), config.value_clip());
    square = torch::max(square, (clipped_value - value_target).square());
  }
  terms.value = square.mean();
  terms.entropy = entropy.mean();
  const torch::Tensor entropy_term =
      given ? coefficients.entropy * terms.entropy : config.entropy_coefficient() * terms.entropy;
  terms.total = terms.policy + config.value_coefficient() * terms.value - entropy_term;

  const torch::NoGradGuard no_grad;
  terms.kl = ((ratio - 1) - log_ratio).mean();
  const torch::Tensor distance = (ratio - 1).abs();
  terms.clip_fraction = (given ? distance > coefficients.clip : distance > config.clip()).to(torch::kFloat32).mean();
  return terms;
}

PpoLossValues& PpoLossValues::operator+=(const PpoLossValues& other) {
  total += other.total;
  policy += other.policy;
  value += other.value;
  entropy += other.entropy;
  kl += other.kl;
  clip_fraction += other.clip_fraction;
  return *this;
}

}  // namespace skein
