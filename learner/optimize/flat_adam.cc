// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/flat_adam.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "learner/optimize/adam_kernel.h"

namespace skein {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;

}  // namespace

FlatAdam::FlatAdam(const std::vector<torch::Tensor>& parameters, double epsilon) : epsilon_(epsilon) {
  const torch::NoGradGuard no_grad;
  int64_t total = 0;
  for (const torch::Tensor& parameter : parameters) total += parameter.numel();
  const int64_t rounded_up = (total + kAdamPadding - 1) / kAdamPadding * kAdamPadding;
  const auto options = parameters.front().options().requires_grad(false);
  for (Buffer* buffer : {&parameters_, &gradient_, &exp_avg_, &exp_avg_sq_}) {
    buffer->all = torch::zeros({rounded_up}, options);
    buffer->used = buffer->all.narrow(0, 0, total);
  }
  int64_t offset = 0;
  for (torch::Tensor parameter : parameters) {
    const int64_t size = parameter.numel();
    torch::Tensor view = parameters_.all.narrow(0, offset, size).view(parameter.sizes());
    view.copy_(parameter);
    parameter.set_data(view);
    parameter.mutable_grad() = gradient_.all.narrow(0, offset, size).view(parameter.sizes());
    offset += size;
  }
}

double FlatAdam::GradientNorm() const {
  return std::sqrt(SumOfSquares(gradient_.all.data_ptr<float>(), gradient_.all.numel()));
}

void FlatAdam::Step(double lr, double scale) {
  const torch::NoGradGuard no_grad;
  ++steps_;
  const double correction1 = 1 - std::pow(kBeta1, static_cast<double>(steps_));
  const double correction2 = 1 - std::pow(kBeta2, static_cast<double>(steps_));
  TakeAdamStep({scale, kBeta1, kBeta2, correction1, correction2, epsilon_, lr}, gradient_.all.numel(),
               gradient_.all.data_ptr<float>(), parameters_.all.data_ptr<float>(), exp_avg_.all.data_ptr<float>(),
               exp_avg_sq_.all.data_ptr<float>());
}

FlatAdam::Enqueued FlatAdam::EnqueueStep(const torch::Tensor& lr, double max_norm) {
  const torch::NoGradGuard no_grad;
  torch::Tensor &gradient = gradient_.all, &exp_avg = exp_avg_.all, &exp_avg_sq = exp_avg_sq_.all;
  if (!enqueued_steps_.defined()) {
    enqueued_steps_ = torch::full({}, static_cast<double>(steps_), lr.options());
  }
  const torch::Tensor norm = gradient.norm().to(torch::kFloat64);
  const torch::Tensor taken = norm.isfinite();
  const torch::Tensor weight = taken.to(torch::kFloat64);  // Of this step: 0 leaves everything as it is.
  const torch::Tensor scale = max_norm > 0 ? (max_norm / (norm + 1e-6)).clamp_max(1.0) : torch::ones_like(norm);
  enqueued_steps_.add_(weight);
  const torch::Tensor step = enqueued_steps_.clamp_min(1.0);
  const torch::Tensor correction1 = 1 - torch::pow(kBeta1, step), correction2 = 1 - torch::pow(kBeta2, step);
  gradient.mul_(scale.to(torch::kFloat32)).masked_fill_(taken.logical_not(), 0);
  exp_avg.add_((gradient - exp_avg) * ((1 - kBeta1) * weight));
  exp_avg_sq.add_((gradient.square() - exp_avg_sq) * ((1 - kBeta2) * weight));
  const torch::Tensor denominator = (exp_avg_sq.sqrt() / correction2.sqrt()).add_(epsilon_);
  parameters_.all.sub_((exp_avg / denominator).mul_(lr * weight / correction1));
  return {norm, taken};
}

int64_t FlatAdam::steps() const {
  return enqueued_steps_.defined() ? static_cast<int64_t>(enqueued_steps_.item<double>()) : steps_;
}

void FlatAdam::Restore(int64_t steps, const torch::Tensor& exp_avg, const torch::Tensor& exp_avg_sq) {
  steps_ = steps;
  if (enqueued_steps_.defined()) enqueued_steps_.fill_(static_cast<double>(steps));
  exp_avg_.used.copy_(exp_avg);
  exp_avg_sq_.used.copy_(exp_avg_sq);
}

}  // namespace skein
