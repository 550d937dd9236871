// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/returns/normalized_advantages.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "learner/optimize/across_ranks.h"

namespace skein {
namespace {

constexpr double kEpsilon = 1e-8;

double InverseDeviation(double squares, int64_t size) {
  return 1 / (std::sqrt(squares / static_cast<double>(size)) + kEpsilon);
}

// Numbers [] of a device, as doubles on the CPU.
std::vector<double> ToDoubles(const std::vector<torch::Tensor>& numbers) {
  const torch::Tensor all = torch::stack(numbers).cpu();
  return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
}

// The same by operations on whole minibatches, for rows that are not on the CPU.
absl::StatusOr<torch::Tensor> NormalizeOnDevice(const torch::Tensor& advantage, const MinibatchOrder& order,
                                                Collective* collective) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor chosen = advantage.index_select(0, order.rows).to(torch::kFloat64);
  std::vector<torch::Tensor> minibatches, sums;
  for (size_t i = 0; i < order.minibatches(); ++i) {
    minibatches.push_back(chosen.narrow(0, order.begin[i], order.begin[i + 1] - order.begin[i]));
    sums.push_back(minibatches.back().sum());
  }
  std::vector<double> mean = ToDoubles(sums);
  if (absl::Status s = SumOverRanks(collective, &mean); !s.ok()) return s;
  for (size_t i = 0; i < order.minibatches(); ++i) {
    if (order.size[i] > 0) minibatches[i].sub_(mean[i] / static_cast<double>(order.size[i]));
    sums[i] = minibatches[i].square().sum();
  }
  std::vector<double> squares = ToDoubles(sums);
  if (absl::Status s = SumOverRanks(collective, &squares); !s.ok()) return s;
  for (size_t i = 0; i < order.minibatches(); ++i) {
    if (order.size[i] > 0) minibatches[i].mul_(InverseDeviation(squares[i], order.size[i]));
  }
  return torch::zeros_like(advantage).index_copy_(0, order.rows, chosen.to(torch::kFloat32));
}

}  // namespace

absl::StatusOr<torch::Tensor> NormalizedAdvantages(const torch::Tensor& given, const MinibatchOrder& order,
                                                   Collective* collective) {
  const torch::Tensor advantage = given.to(order.rows.device());
  if (!advantage.is_cpu()) return NormalizeOnDevice(advantage, order, collective);
  torch::Tensor normalized = torch::empty_like(advantage);
  const float* in = advantage.data_ptr<float>();
  const int64_t* index = order.rows.data_ptr<int64_t>();
  float* out = normalized.data_ptr<float>();
  const size_t count = order.minibatches();
  std::vector<double> mean(count, 0), squares(count, 0);
  for (size_t i = 0; i < count; ++i) {
    for (int64_t k = order.begin[i]; k < order.begin[i + 1]; ++k) mean[i] += in[index[k]];
  }
  if (absl::Status s = SumOverRanks(collective, &mean); !s.ok()) return s;
  for (size_t i = 0; i < count; ++i) {
    if (order.size[i] == 0) continue;
    mean[i] /= static_cast<double>(order.size[i]);
    for (int64_t k = order.begin[i]; k < order.begin[i + 1]; ++k) {
      squares[i] += (in[index[k]] - mean[i]) * (in[index[k]] - mean[i]);
    }
  }
  if (absl::Status s = SumOverRanks(collective, &squares); !s.ok()) return s;
  for (size_t i = 0; i < count; ++i) {
    const double scale = InverseDeviation(squares[i], order.size[i]);
    for (int64_t k = order.begin[i]; k < order.begin[i + 1]; ++k) {
      out[index[k]] = static_cast<float>((in[index[k]] - mean[i]) * scale);
    }
  }
  return normalized;
}

}  // namespace skein
