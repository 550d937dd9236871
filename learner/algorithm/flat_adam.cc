// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/flat_adam.h"

#include <torch/torch.h>

#include <cmath>

namespace skein {
namespace {

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;

}  // namespace

FlatAdam::FlatAdam(const std::vector<torch::Tensor>& parameters, double epsilon) : epsilon_(epsilon) {
  const torch::NoGradGuard no_grad;
  int64_t total = 0;
  for (const torch::Tensor& parameter : parameters) total += parameter.numel();
  const auto options = parameters.front().options().requires_grad(false);
  parameters_ = torch::empty({total}, options);
  gradient_ = torch::zeros({total}, options);
  exp_avg_ = torch::zeros({total}, options);
  exp_avg_sq_ = torch::zeros({total}, options);
  denominator_ = torch::empty({total}, options);
  int64_t offset = 0;
  for (torch::Tensor parameter : parameters) {
    const int64_t size = parameter.numel();
    torch::Tensor view = parameters_.narrow(0, offset, size).view(parameter.sizes());
    view.copy_(parameter);
    parameter.set_data(view);
    parameter.mutable_grad() = gradient_.narrow(0, offset, size).view(parameter.sizes());
    offset += size;
  }
}

double FlatAdam::GradientNorm() const { return gradient_.norm().item<double>(); }

void FlatAdam::Step(double lr, double scale) {
  const torch::NoGradGuard no_grad;
  ++steps_;
  const double correction1 = 1 - std::pow(kBeta1, static_cast<double>(steps_));
  const double correction2 = 1 - std::pow(kBeta2, static_cast<double>(steps_));
  if (scale != 1) gradient_.mul_(scale);
  exp_avg_.mul_(kBeta1).add_(gradient_, 1 - kBeta1);
  exp_avg_sq_.mul_(kBeta2).addcmul_(gradient_, gradient_, 1 - kBeta2);
  at::sqrt_out(denominator_, exp_avg_sq_);
  denominator_.div_(std::sqrt(correction2)).add_(epsilon_);
  parameters_.addcdiv_(exp_avg_, denominator_, -lr / correction1);
}

void FlatAdam::Restore(int64_t steps, const torch::Tensor& exp_avg, const torch::Tensor& exp_avg_sq) {
  steps_ = steps;
  exp_avg_.copy_(exp_avg);
  exp_avg_sq_.copy_(exp_avg_sq);
}

}  // namespace skein
