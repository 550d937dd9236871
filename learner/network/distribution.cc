// SPDX-License-Identifier: Apache-2.0
#include "learner/network/distribution.h"

#include <torch/types.h>

#include <cmath>

namespace skein {
namespace {

const double kLog2Pi = std::log(2.0 * M_PI);

}  // namespace

torch::Tensor GaussianLogProb(const torch::Tensor& mean, const torch::Tensor& log_std, const torch::Tensor& action) {
  // sum_d ((a_d - m_d) / std_d)^2 as a matrix-vector product with the inverse variances.
  torch::Tensor squared_distance = (action - mean).square();
  torch::Tensor inverse_variance = (log_std * -2).exp();
  torch::Tensor log_volume = log_std.sum().expand({mean.size(0)});
  torch::Tensor unnormalized =
      torch::addmv(log_volume, squared_distance, inverse_variance, /*beta=*/-1, /*alpha=*/-0.5);
  return unnormalized.sub_(0.5 * kLog2Pi * log_std.size(0));
}

torch::Tensor GaussianEntropy(const torch::Tensor& log_std) {
  return log_std.sum() + 0.5 * (1.0 + kLog2Pi) * log_std.size(0);
}

torch::Tensor CategoricalLogProb(const torch::Tensor& logits, const torch::Tensor& action) {
  return logits.log_softmax(1).gather(1, action.unsqueeze(1)).squeeze(1);
}

torch::Tensor CategoricalEntropy(const torch::Tensor& logits) {
  torch::Tensor log_prob = logits.log_softmax(1);
  return (log_prob.exp() * log_prob).sum(1).neg();
}

}  // namespace skein
