// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/minibatch_order.h"

#include <torch/types.h>
#include <torch/utils.h>

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

// Of minibatches of `total` rows; the last one takes the remainder too.
std::vector<int64_t> Sizes(int64_t total, int64_t minibatch_size) {
  std::vector<int64_t> sizes(std::max<int64_t>(1, total / minibatch_size), minibatch_size);
  sizes.back() = total - static_cast<int64_t>(sizes.size() - 1) * minibatch_size;
  return sizes;
}

absl::Status SumSizes(const std::vector<double>& mine, Collective* collective, MinibatchOrder* order) {
  std::vector<double> sizes = mine;
  if (absl::Status s = SumOverRanks(collective, &sizes); !s.ok()) return s;
  order->size.clear();
  for (const double size : sizes) order->size.push_back(std::llround(size));
  return absl::OkStatus();
}

}  // namespace

MinibatchOrder ShuffleMinibatches(const RowShare& share, int64_t minibatch_size, uint64_t seed, uint64_t iteration,
                                  uint32_t epoch) {
  const torch::Tensor all = Permutation(share.total_size(), seed, iteration, epoch);
  MinibatchOrder order;
  order.size = Sizes(share.total_size(), minibatch_size);
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
  return SumSizes(size, collective, order);
}

absl::StatusOr<MinibatchOrder> ShuffleActive(const RowShare& share, const torch::Tensor& active, int64_t minibatch_size,
                                             uint64_t seed, uint64_t iteration, uint32_t epoch,
                                             Collective* collective) {
  const torch::NoGradGuard no_grad;
  const int64_t total = share.total_size();
  const auto options = torch::TensorOptions(torch::kInt64).device(active.device());
  RandomStream random(seed, RandomPurpose::kPermutation, iteration, epoch);
  at::Generator generator = at::globalContext().defaultGenerator(active.device()).clone();
  generator.set_current_seed((uint64_t{random.Below(0x80000000u)} << 31) | random.Below(0x80000000u));
  const torch::Tensor all = torch::randperm(total, generator, options);
  const torch::Tensor column = all.remainder(share.total) - share.offset;
  const torch::Tensor mine = (column >= 0).logical_and_(column < share.columns);
  const torch::Tensor row = all.floor_divide(share.total) * share.columns + column.clamp(0, share.columns - 1);
  const torch::Tensor kept = share.columns > 0 ? mine.logical_and(active.index_select(0, row)) : mine;

  std::vector<int64_t> ends;
  int64_t end = 0;
  for (const int64_t size : Sizes(total, minibatch_size)) ends.push_back((end += size) - 1);
  const torch::Tensor last = torch::tensor(ends, torch::kInt64).to(active.device());
  const torch::Tensor begins = kept.cumsum(0).index_select(0, last).cpu();
  MinibatchOrder order;
  order.rows = row.masked_select(kept);
  order.begin.push_back(0);
  std::vector<double> sizes;
  for (int64_t i = 0; i < begins.numel(); ++i) {
    order.begin.push_back(begins.data_ptr<int64_t>()[i]);
    sizes.push_back(static_cast<double>(order.begin.back() - order.begin[order.begin.size() - 2]));
  }
  if (absl::Status s = SumSizes(sizes, collective, &order); !s.ok()) return s;
  return order;
}

}  // namespace skein
