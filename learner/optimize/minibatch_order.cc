// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/minibatch_order.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/number/philox.h"
#include "learner/optimize/across_ranks.h"

namespace skein {
namespace {

torch::Tensor Permutation(int64_t size, uint64_t seed, uint64_t iteration, uint32_t epoch) {
  RandomStream random(seed, RandomPurpose::kPermutation, iteration, epoch);
  torch::Tensor order = torch::empty({size}, torch::kInt64);
  int64_t* begin = order.data_ptr<int64_t>();
  std::iota(begin, begin + size, int64_t{0});
  for (int64_t i = size - 1; i > 0; --i) std::swap(begin[i], begin[random.Below(static_cast<uint32_t>(i + 1))]);
  return order;
}

}  // namespace

MinibatchOrder ShuffleMinibatches(const RowShare& share, int64_t minibatch_size, uint64_t seed, uint64_t iteration,
                                  uint32_t epoch) {
  const int64_t total = share.total_size();
  const torch::Tensor all = Permutation(total, seed, iteration, epoch);
  const int64_t count = std::max<int64_t>(1, total / minibatch_size);
  MinibatchOrder order;
  for (int64_t i = 0; i + 1 < count; ++i) order.size.push_back(minibatch_size);
  order.size.push_back(total - (count - 1) * minibatch_size);
  order.begin.push_back(0);
  if (share.columns == share.total) {
    order.rows = all;
    for (const int64_t size : order.size) order.begin.push_back(order.begin.back() + size);
    return order;
  }
  order.rows = torch::empty({share.size()}, torch::kInt64);
  int64_t* const rows = order.rows.data_ptr<int64_t>();
  const int64_t* next = all.data_ptr<int64_t>();
  int64_t found = 0;
  for (const int64_t size : order.size) {
    for (const int64_t* const end = next + size; next < end; ++next) {
      const int64_t column = *next % share.total - share.offset;
      if (column >= 0 && column < share.columns) rows[found++] = *next / share.total * share.columns + column;
    }
    order.begin.push_back(found);
  }
  return order;
}

absl::Status KeepActive(const torch::Tensor& active, Collective* collective, MinibatchOrder* order) {
  const bool* const is_active = active.data_ptr<bool>();
  const int64_t* const rows = order->rows.data_ptr<int64_t>();
  torch::Tensor kept = torch::empty_like(order->rows);
  int64_t* const to = kept.data_ptr<int64_t>();
  int64_t found = 0, next = 0;
  std::vector<double> size;
  for (size_t i = 0; i < order->minibatches(); ++i) {
    const int64_t first = found;
    for (; next < order->begin[i + 1]; ++next) {
      if (is_active[rows[next]]) to[found++] = rows[next];
    }
    order->begin[i + 1] = found;
    size.push_back(static_cast<double>(found - first));
  }
  order->rows = kept.narrow(0, 0, found);
  if (absl::Status s = SumOverRanks(collective, &size); !s.ok()) return s;
  for (size_t i = 0; i < size.size(); ++i) order->size[i] = std::llround(size[i]);
  return absl::OkStatus();
}

}  // namespace skein
