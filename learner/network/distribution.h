// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

// Action distributions as pure functions of tensors. B rows; gradients flow through every input.
namespace skein {

// Diagonal Gaussian with state-independent log standard deviation. mean, action [B, D]; log_std [D] -> [B].
torch::Tensor GaussianLogProb(const torch::Tensor& mean, const torch::Tensor& log_std, const torch::Tensor& action);
// Entropy of one row, a scalar: sum_d (log_std_d + (1 + log 2 pi) / 2).
torch::Tensor GaussianEntropy(const torch::Tensor& log_std);

// Categorical over logits [B, C]; action int64 [B] -> [B].
torch::Tensor CategoricalLogProb(const torch::Tensor& logits, const torch::Tensor& action);
torch::Tensor CategoricalEntropy(const torch::Tensor& logits);  // -> [B]

}  // namespace skein
