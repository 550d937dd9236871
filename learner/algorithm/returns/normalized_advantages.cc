// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/returns/normalized_advantages.h"

#include <torch/types.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "learner/optimize/across_ranks.h"

namespace skein {
namespace {

constexpr double kEpsilon = 1e-8;

}  // namespace

absl::StatusOr<torch::Tensor> NormalizedAdvantages(const torch::Tensor& advantage, const MinibatchOrder& order,
                                                   Collective* collective) {
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
    const double scale = 1 / (std::sqrt(squares[i] / static_cast<double>(order.size[i])) + kEpsilon);
    for (int64_t k = order.begin[i]; k < order.begin[i + 1]; ++k) {
      out[index[k]] = static_cast<float>((in[index[k]] - mean[i]) * scale);
    }
  }
  return normalized;
}

}  // namespace skein
