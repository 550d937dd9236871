// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "learner/algorithm/ppo/ppo_loss.h"
#include "learner/optimize/minibatch.h"

// PpoLoss and its derivatives row by row, for FusedGradient. PpoLoss defines the result.
namespace skein {

// A selection of rows from `samples`, which must outlive it. `index` and `size` select the rows; initially none.
struct LossRows {
  LossRows(const Minibatch& samples, double weight);

  const int64_t* index = nullptr;  // Row number of each selected row in the samples.
  int64_t size = 0;
  double weight;  // Weight of one row in the means over the whole minibatch.
  const float* log_prob;
  const float* advantage;
  const float* old_value;
  const float* value_target;
};

// Each function adds its part of the loss, without weights, to `sum`. Row i of `head`, `delta` and `value` begins
// `stride` floats after row i - 1 and belongs to sample index[i].

// head: means. Writes d(loss)/d(mean) to delta; adds d(loss)/d(log_std) to grad_log_std [actions].
void GaussianTerms(const LossRows& rows, const float* head, int64_t stride, const float* log_std, const float* action,
                   int64_t actions, const v1::PpoConfig& config, float* delta, float* grad_log_std, PpoLossValues& sum);
// head: logits. Writes d(loss)/d(logits) to delta.
void CategoricalTerms(const LossRows& rows, const float* head, int64_t stride, const int64_t* action, int64_t choices,
                      const v1::PpoConfig& config, float* delta, PpoLossValues& sum);
// Writes d(loss)/d(value) to delta.
void ValueTerms(const LossRows& rows, const float* value, int64_t stride, const v1::PpoConfig& config, float* delta,
                PpoLossValues& sum);

}  // namespace skein
