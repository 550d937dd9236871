// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/flat_adam.h"

#include <torch/torch.h>

#include <cmath>

#include "learner/algorithm/adam_kernel.h"

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
  if (!gradient_.all.is_cpu()) return gradient_.all.norm().item<double>();
  return std::sqrt(SumOfSquares(gradient_.all.data_ptr<float>(), gradient_.all.numel()));
}

void FlatAdam::Step(double lr, double scale) {
  const torch::NoGradGuard no_grad;
  ++steps_;
  const double correction1 = 1 - std::pow(kBeta1, static_cast<double>(steps_));
  const double correction2 = 1 - std::pow(kBeta2, static_cast<double>(steps_));
  torch::Tensor &parameters = parameters_.all, &gradient = gradient_.all, &exp_avg = exp_avg_.all,
                &exp_avg_sq = exp_avg_sq_.all;
  if (gradient.is_cpu()) {
    TakeAdamStep({scale, kBeta1, kBeta2, correction1, correction2, epsilon_, lr}, gradient.numel(),
                 gradient.data_ptr<float>(), parameters.data_ptr<float>(), exp_avg.data_ptr<float>(),
                 exp_avg_sq.data_ptr<float>());
    return;
  }
  gradient.mul_(scale);
  exp_avg.mul_(kBeta1).add_(gradient, 1 - kBeta1);
  exp_avg_sq.mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
  const torch::Tensor denominator = exp_avg_sq.sqrt().div_(std::sqrt(correction2)).add_(epsilon_);
  parameters.addcdiv_(exp_avg, denominator, -lr / correction1);
}

void FlatAdam::Restore(int64_t steps, const torch::Tensor& exp_avg, const torch::Tensor& exp_avg_sq) {
  steps_ = steps;
  exp_avg_.used.copy_(exp_avg);
  exp_avg_sq_.used.copy_(exp_avg_sq);
}

}  // namespace skein
