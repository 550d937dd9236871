// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/fused_gradient.h"

#include <absl/strings/match.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

namespace skein {
namespace {

constexpr double kHalfLogTwoPi = 0.91893853320467274178;
// Rows that go through the networks together: what they leave behind stays in the cache.
constexpr int64_t kRows = 512;
constexpr size_t kMaxWorkspaces = 8;

// The part of the loss behind one sample's log-probability: adds to `sum`, returns d(loss)/d(log-probability) times B.
double PolicyTerm(double log_prob, double old_log_prob, double advantage, double clip, LossValues& sum) {
  const double log_ratio = log_prob - old_log_prob;
  const double ratio = std::exp(log_ratio);
  const double clipped_ratio = std::clamp(ratio, 1 - clip, 1 + clip);
  sum.kl += (ratio - 1) - log_ratio;
  if (std::abs(ratio - 1) > clip) sum.clip_fraction += 1;
  sum.policy -= std::min(ratio * advantage, clipped_ratio * advantage);
  // The minimum is the clipped product, a constant, where clipping makes the objective smaller.
  return ratio * advantage <= clipped_ratio * advantage ? -ratio * advantage : 0;
}

// The same for the value; returns d(square)/d(value).
double ValueTerm(double value, double old_value, double target, double clip, LossValues& sum) {
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

struct Samples {
  Samples(const Minibatch& batch, double weight)
      : size(batch.size()),
        weight(weight),
        log_prob(batch.log_prob.data_ptr<float>()),
        advantage(batch.advantage.data_ptr<float>()),
        old_value(batch.old_value.data_ptr<float>()),
        value_target(batch.value_target.data_ptr<float>()) {}
  const int64_t size;
  const double weight;  // Of one sample in the means over the whole minibatch.
  const float* log_prob;
  const float* advantage;
  const float* old_value;
  const float* value_target;
};

// d(loss)/d(mean) into `delta` [B, D], adds d(loss)/d(log_std) to `grad_log_std` [D].
void GaussianTerms(const Samples& samples, const torch::Tensor& mean, const torch::Tensor& log_std,
                   const torch::Tensor& action, const v1::PpoConfig& config, torch::Tensor& delta,
                   torch::Tensor& grad_log_std, LossValues& sum) {
  const int64_t size = log_std.size(0);
  const float* m = mean.data_ptr<float>();
  const float* a = action.data_ptr<float>();
  const float* s = log_std.data_ptr<float>();
  float* d = delta.data_ptr<float>();
  std::vector<double> inv_std(size), z(size), grad(size, 0);
  double constant = 0, entropy = 0;
  for (int64_t i = 0; i < size; ++i) {
    inv_std[i] = std::exp(-static_cast<double>(s[i]));
    constant -= s[i] + kHalfLogTwoPi;
    entropy += s[i] + kHalfLogTwoPi + 0.5;
  }
  for (int64_t row = 0; row < samples.size; ++row, m += size, a += size, d += size) {
    double squares = 0;
    for (int64_t i = 0; i < size; ++i) {
      z[i] = (static_cast<double>(a[i]) - m[i]) * inv_std[i];
      squares += z[i] * z[i];
    }
    const double slope = samples.weight * PolicyTerm(constant - 0.5 * squares, samples.log_prob[row],
                                                     samples.advantage[row], config.clip(), sum);
    for (int64_t i = 0; i < size; ++i) {
      d[i] = static_cast<float>(slope * z[i] * inv_std[i]);
      grad[i] += slope * (z[i] * z[i] - 1);
    }
  }
  const double rows = static_cast<double>(samples.size);
  sum.entropy += entropy * rows;
  float* g = grad_log_std.data_ptr<float>();
  const double entropy_slope = config.entropy_coefficient() * samples.weight * rows;
  for (int64_t i = 0; i < size; ++i) g[i] += static_cast<float>(grad[i] - entropy_slope);
}

// d(loss)/d(logits) into `delta` [B, C].
void CategoricalTerms(const Samples& samples, const torch::Tensor& logits, const torch::Tensor& action,
                      const v1::PpoConfig& config, torch::Tensor& delta, LossValues& sum) {
  const int64_t choices = logits.size(1);
  const float* l = logits.data_ptr<float>();
  const int64_t* a = action.data_ptr<int64_t>();
  float* d = delta.data_ptr<float>();
  std::vector<double> log_p(choices), p(choices);
  for (int64_t row = 0; row < samples.size; ++row, l += choices, d += choices) {
    const double top = *std::max_element(l, l + choices);
    double total = 0;
    for (int64_t c = 0; c < choices; ++c) total += std::exp(l[c] - top);
    const double log_total = top + std::log(total);
    double entropy = 0;
    for (int64_t c = 0; c < choices; ++c) {
      log_p[c] = l[c] - log_total;
      p[c] = std::exp(log_p[c]);
      entropy -= p[c] * log_p[c];
    }
    sum.entropy += entropy;
    const double slope =
        samples.weight * PolicyTerm(log_p[a[row]], samples.log_prob[row], samples.advantage[row], config.clip(), sum);
    for (int64_t c = 0; c < choices; ++c) {
      const double entropy_slope = -p[c] * (log_p[c] + entropy);
      d[c] = static_cast<float>(slope * ((c == a[row] ? 1 : 0) - p[c]) -
                                config.entropy_coefficient() * samples.weight * entropy_slope);
    }
  }
}

// One hidden layer into `output`.
void ForwardHidden(ActivationKind kind, const torch::Tensor& bias, const torch::Tensor& input,
                   const torch::Tensor& weight_t, torch::Tensor& output) {
  switch (kind) {
    case ActivationKind::kTanh:
      // tanh(x) = 2 sigmoid(2 x) - 1, to about 1e-7.
      at::addmm_out(output, bias, input, weight_t, /*beta=*/2, /*alpha=*/2);
      output.sigmoid_().mul_(2).sub_(1);
      return;
    case ActivationKind::kElu:
      at::addmm_out(output, bias, input, weight_t);
      at::elu_(output);
      return;
    case ActivationKind::kRelu:
      at::addmm_out(output, bias, input, weight_t);
      output.relu_();
      return;
  }
}

// Multiplies `delta` by the activation's derivative, told from its output.
void ActivateBackward(ActivationKind kind, const torch::Tensor& output, torch::Tensor& delta) {
  switch (kind) {
    case ActivationKind::kTanh:
      at::tanh_backward_out(delta, delta, output);
      return;
    case ActivationKind::kElu:
      at::elu_backward_out(delta, delta, 1, 1, 1, /*is_result=*/true, output);
      return;
    case ActivationKind::kRelu:
      at::threshold_backward_out(delta, delta, output, 0);
      return;
  }
}

}  // namespace

bool FusedGradient::Supports(const ActorCritic& network) {
  return !network.options().shared_trunk && network.AllParameters().front().second.is_cpu();
}

FusedGradient::FusedGradient(const ActorCritic& network) : activation_(network.options().activation) {
  const torch::NoGradGuard no_grad;
  const auto parameters = network.AllParameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, parameter] = parameters[i];
    if (name == "log_std") {
      log_std_ = parameter.detach();
      grad_log_std_ = parameter.grad();
    } else if (absl::EndsWith(name, ".weight")) {  // Its bias follows.
      const torch::Tensor weight = parameter.detach(), bias = parameters[i + 1].second.detach();
      auto& stack = absl::StartsWith(name, "policy.") ? policy_ : value_;
      stack.push_back({weight, weight.t(), bias, parameter.grad(), parameters[i + 1].second.grad()});
    }
  }
}

FusedGradient::Workspace& FusedGradient::WorkspaceFor(int64_t rows) {
  for (Workspace& workspace : workspaces_) {
    if (workspace.rows == rows) return workspace;
  }
  if (workspaces_.size() == kMaxWorkspaces) workspaces_.erase(workspaces_.begin());
  Workspace& workspace = workspaces_.emplace_back();
  workspace.rows = rows;
  workspace.ones = torch::ones({rows});
  for (auto [layers, buffers] :
       {std::make_pair(&policy_, &workspace.policy), std::make_pair(&value_, &workspace.value)}) {
    for (const Layer& layer : *layers) {
      buffers->output.push_back(torch::empty({rows, layer.bias.size(0)}));
      buffers->delta.push_back(torch::empty({rows, layer.bias.size(0)}));
      buffers->delta_t.push_back(buffers->delta.back().t());
    }
  }
  return workspace;
}

void FusedGradient::Forward(const std::vector<Layer>& layers, const torch::Tensor& input, Buffers& buffers) const {
  const torch::Tensor* x = &input;
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    ForwardHidden(activation_, layers[i].bias, *x, layers[i].weight_t, buffers.output[i]);
    x = &buffers.output[i];
  }
  at::addmm_out(buffers.output.back(), layers.back().bias, *x, layers.back().weight_t);
}

void FusedGradient::Backward(std::vector<Layer>& layers, const torch::Tensor& input, const torch::Tensor& ones,
                             Buffers& buffers) const {
  for (size_t i = layers.size(); i-- > 0;) {
    Layer& layer = layers[i];
    layer.grad_weight.addmm_(buffers.delta_t[i], i == 0 ? input : buffers.output[i - 1]);
    layer.grad_bias.addmv_(buffers.delta_t[i], ones);
    if (i == 0) break;
    at::mm_out(buffers.delta[i - 1], buffers.delta[i], layer.weight);
    ActivateBackward(activation_, buffers.output[i - 1], buffers.delta[i - 1]);
  }
}

LossValues FusedGradient::Compute(const Minibatch& batch, const v1::PpoConfig& config) {
  const torch::NoGradGuard no_grad;
  const double weight = 1.0 / static_cast<double>(batch.size());
  LossValues loss;
  for (int64_t first = 0; first < batch.size(); first += kRows) {
    AddRows(batch.size() <= kRows ? batch : batch.Slice(first, std::min(kRows, batch.size() - first)), weight, config,
            loss);
  }
  for (double* term : {&loss.policy, &loss.value, &loss.entropy, &loss.kl, &loss.clip_fraction}) *term *= weight;
  loss.total = loss.policy + config.value_coefficient() * loss.value - config.entropy_coefficient() * loss.entropy;
  return loss;
}

void FusedGradient::AddRows(const Minibatch& rows, double weight, const v1::PpoConfig& config, LossValues& sum) {
  Workspace& work = WorkspaceFor(rows.size());
  Forward(policy_, rows.obs, work.policy);
  Forward(value_, rows.obs, work.value);

  const Samples samples(rows, weight);
  if (log_std_.defined()) {
    GaussianTerms(samples, work.policy.output.back(), log_std_, rows.action, config, work.policy.delta.back(),
                  grad_log_std_, sum);
  } else {
    CategoricalTerms(samples, work.policy.output.back(), rows.action, config, work.policy.delta.back(), sum);
  }
  const float* value = work.value.output.back().data_ptr<float>();
  float* value_delta = work.value.delta.back().data_ptr<float>();
  for (int64_t row = 0; row < samples.size; ++row) {
    const double slope =
        ValueTerm(value[row], samples.old_value[row], samples.value_target[row], config.value_clip(), sum);
    value_delta[row] = static_cast<float>(config.value_coefficient() * weight * slope);
  }

  Backward(policy_, rows.obs, work.ones, work.policy);
  Backward(value_, rows.obs, work.ones, work.value);
}

torch::Tensor FusedGradient::Values(const torch::Tensor& obs) {
  const torch::NoGradGuard no_grad;
  torch::Tensor values = torch::empty({obs.size(0)});
  for (int64_t first = 0; first < obs.size(0); first += kRows) {
    const int64_t rows = std::min(kRows, obs.size(0) - first);
    Workspace& work = WorkspaceFor(rows);
    Forward(value_, obs.narrow(0, first, rows), work.value);
    values.narrow(0, first, rows).copy_(work.value.output.back().view({rows}));
  }
  return values;
}

}  // namespace skein
