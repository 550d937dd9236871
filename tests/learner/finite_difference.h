// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <string>

namespace skein {

// Expects that the gradient of `loss` in every element of `input` is its central difference.
// REQUIRES: input is a float64 leaf that requires a gradient; loss is a scalar of it.
inline void ExpectGradientMatchesDifferences(const std::function<torch::Tensor()>& loss, torch::Tensor input,
                                             const std::string& name) {
  const torch::Tensor gradient = torch::autograd::grad({loss()}, {input})[0].contiguous();
  torch::NoGradGuard no_grad;
  constexpr double kStep = 1e-6;
  double* const element = input.data_ptr<double>();
  for (int64_t i = 0; i < input.numel(); ++i) {
    const double kept = element[i];
    element[i] = kept + kStep;
    const double above = loss().item<double>();
    element[i] = kept - kStep;
    const double below = loss().item<double>();
    element[i] = kept;
    EXPECT_NEAR(gradient.data_ptr<double>()[i], (above - below) / (2 * kStep), 1e-6) << name << " element " << i;
  }
}

}  // namespace skein
