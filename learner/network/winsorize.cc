// SPDX-License-Identifier: Apache-2.0
#include "learner/network/winsorize.h"

#include <torch/types.h>
#include <torch/utils.h>

namespace skein {
namespace {

constexpr double kDeviations = 10;
constexpr double kLeast = 10;

}  // namespace

torch::Tensor Winsorize(const torch::Tensor& rows, const RunningMoments& moments) {
  if (moments.count() == 0) return rows;
  const torch::NoGradGuard no_grad;
  const torch::Tensor reach = (moments.variance().sqrt() * kDeviations).clamp_min(kLeast);
  return torch::clamp(rows, (moments.mean() - reach).to(rows.options()), (moments.mean() + reach).to(rows.options()));
}

}  // namespace skein
