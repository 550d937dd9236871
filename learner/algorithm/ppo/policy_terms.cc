// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo/policy_terms.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace skein {
namespace {

constexpr double kHalfLogTwoPi = 0.91893853320467274178;

// The part of the loss behind one sample's log-probability: returns d(loss)/d(log-probability) times the batch size.
double RatioTerm(double log_prob, double old_log_prob, double advantage, double clip, PpoLossValues& sum) {
  const double log_ratio = std::clamp(log_prob - old_log_prob, -kLogRatioBound, kLogRatioBound);
  const double ratio = std::exp(log_ratio);
  const double clipped_ratio = std::clamp(ratio, 1 - clip, 1 + clip);
  sum.kl += (ratio - 1) - log_ratio;
  if (std::abs(ratio - 1) > clip) sum.clip_fraction += 1;
  sum.policy -= std::min(ratio * advantage, clipped_ratio * advantage);
  if (std::abs(log_ratio) == kLogRatioBound) return 0;
  // The minimum is the clipped product, a constant, where clipping makes the objective smaller.
  return ratio * advantage <= clipped_ratio * advantage ? -ratio * advantage : 0;
}

// The same for the value; returns d(square)/d(value).
double ValueTerm(double value, double old_value, double target, double clip, PpoLossValues& sum) {
  const double square = (value - target) * (value - target);
  if (clip > 0) {
    const double clipped = old_value + std::clamp(value - old_value, -clip, clip);
    const double clipped_square = (clipped - target) * (clipped - target);
    if (clipped_square > square) {
      sum.value += clipped_square;
      return std::abs(value - old_value) <= clip ? 2 * (clipped - target) : 0;
    }
  }
  sum.value += square;
  return 2 * (value - target);
}

}  // namespace

LossRows::LossRows(const Minibatch& samples, double weight)
    : weight(weight),
      log_prob(samples["log_prob"].data_ptr<float>()),
      advantage(samples["advantage"].data_ptr<float>()),
      old_value(samples["old_value"].data_ptr<float>()),
      value_target(samples["value_target"].data_ptr<float>()) {}

void GaussianTerms(const LossRows& rows, const float* head, int64_t stride, const float* log_std, const float* action,
                   int64_t actions, const v1::PpoConfig& config, float* delta, float* grad_log_std,
                   PpoLossValues& sum) {
  std::vector<double> inv_std(actions), z(actions), grad(actions, 0);
  double constant = 0, entropy = 0;
  for (int64_t i = 0; i < actions; ++i) {
    inv_std[i] = std::exp(-static_cast<double>(log_std[i]));
    constant -= log_std[i] + kHalfLogTwoPi;
    entropy += log_std[i] + kHalfLogTwoPi + 0.5;
  }
  const double clip = config.clip();
  for (int64_t row = 0; row < rows.size; ++row, head += stride, delta += stride) {
    const int64_t sample = rows.index[row];
    const float* const a = action + sample * actions;
    double squares = 0;
    for (int64_t i = 0; i < actions; ++i) {
      z[i] = (static_cast<double>(a[i]) - head[i]) * inv_std[i];
      squares += z[i] * z[i];
    }
    const double slope =
        rows.weight * RatioTerm(constant - 0.5 * squares, rows.log_prob[sample], rows.advantage[sample], clip, sum);
    for (int64_t i = 0; i < actions; ++i) {
      delta[i] = static_cast<float>(slope * z[i] * inv_std[i]);
      grad[i] += slope * (z[i] * z[i] - 1);
    }
  }
  const double size = static_cast<double>(rows.size);
  sum.entropy += entropy * size;
  const double entropy_slope = config.entropy_coefficient() * rows.weight * size;
  for (int64_t i = 0; i < actions; ++i) grad_log_std[i] += static_cast<float>(grad[i] - entropy_slope);
}

void CategoricalTerms(const LossRows& rows, const float* head, int64_t stride, const int64_t* action, int64_t choices,
                      const v1::PpoConfig& config, float* delta, PpoLossValues& sum) {
  std::vector<double> log_p(choices), p(choices);
  for (int64_t row = 0; row < rows.size; ++row, head += stride, delta += stride) {
    const int64_t sample = rows.index[row];
    const double top = *std::max_element(head, head + choices);
    double total = 0;
    for (int64_t c = 0; c < choices; ++c) total += std::exp(head[c] - top);
    const double log_total = top + std::log(total);
    double entropy = 0;
    for (int64_t c = 0; c < choices; ++c) {
      log_p[c] = head[c] - log_total;
      p[c] = std::exp(log_p[c]);
      entropy -= p[c] * log_p[c];
    }
    sum.entropy += entropy;
    const double slope = rows.weight * RatioTerm(log_p[action[sample]], rows.log_prob[sample], rows.advantage[sample],
                                                 config.clip(), sum);
    for (int64_t c = 0; c < choices; ++c) {
      const double entropy_slope = -p[c] * (log_p[c] + entropy);
      delta[c] = static_cast<float>(slope * ((c == action[sample] ? 1 : 0) - p[c]) -
                                    config.entropy_coefficient() * rows.weight * entropy_slope);
    }
  }
}

void ValueTerms(const LossRows& rows, const float* value, int64_t stride, const v1::PpoConfig& config, float* delta,
                PpoLossValues& sum) {
  const double coefficient = config.value_coefficient() * rows.weight, clip = config.value_clip();
  for (int64_t row = 0; row < rows.size; ++row) {
    const int64_t sample = rows.index[row];
    const double slope = ValueTerm(value[row * stride], rows.old_value[sample], rows.value_target[sample], clip, sum);
    delta[row * stride] = static_cast<float>(coefficient * slope);
  }
}

}  // namespace skein
