// SPDX-License-Identifier: Apache-2.0
#include "learner/network/tensor_moments.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

namespace skein {
namespace {

constexpr int64_t kWordBits = 32, kWords = 4;
constexpr int64_t kWord = 0xFFFFFFFF;
constexpr double kWordUnit = 0x1p32;
constexpr double kUnits = 0x1p40;  // Of an element, as in ExactMoments; of its square 2^48.
// Rows of one call's sums: with numbers under 2^33 it stays under 2^53.
constexpr int64_t kRowsAtOnce = int64_t{1} << 19;

// whole [..] -> the whole numbers of its parts in units of 2^(32 i); all but the last are in [0, 2^32).
std::vector<torch::Tensor> Split(torch::Tensor whole, int parts) {
  std::vector<torch::Tensor> split;
  while (parts-- > 1) {
    const torch::Tensor high = (whole * (1 / kWordUnit)).floor_();
    split.push_back(whole.sub_(high * kWordUnit));
    whole = high;
  }
  split.push_back(whole);
  return split;
}

}  // namespace

TensorMoments::TensorMoments(int64_t size, torch::Device device, int64_t groups)
    : size_(size), groups_(groups), device_(device) {
  Clear();
}

void TensorMoments::Clear() {
  for (Sum* sum : {&sum_, &square_sum_}) {
    sum->clear();
    for (int64_t i = 0; i < kWords; ++i) {
      sum->push_back(torch::zeros({groups_, size_}, torch::TensorOptions(torch::kInt64).device(device_)));
    }
  }
}

std::vector<torch::Tensor*> TensorMoments::Tensors() {
  std::vector<torch::Tensor*> tensors;
  for (Sum* sum : {&sum_, &square_sum_}) {
    for (torch::Tensor& word : *sum) tensors.push_back(&word);
  }
  return tensors;
}

void TensorMoments::Add(const torch::Tensor& rows, const torch::Tensor& counted) {
  const torch::NoGradGuard no_grad;
  const int64_t of_group = rows.size(0) / groups_, most = std::max<int64_t>(1, kRowsAtOnce / groups_);
  const torch::Tensor grouped = rows.view({groups_, of_group, size_});
  const torch::Tensor which = counted.view({groups_, 1, of_group});
  for (int64_t first = 0; first < of_group; first += most) {
    const int64_t count = std::min(most, of_group - first);
    const torch::Tensor counts = which.narrow(2, first, count).to(torch::kFloat64);
    // A float32 has 24 bits, its square 48: both are whole numbers of so many bits times a power of two.
    const torch::Tensor units = grouped.narrow(1, first, count).to(torch::kFloat64).mul_(kUnits).trunc_();
    const torch::Tensor squares = (units * units).mul_(1 / kWordUnit).add_(0.5).floor_();
    AddParts(Split(units, 2), counts, &sum_);
    AddParts(Split(squares, 3), counts, &square_sum_);
  }
}

void TensorMoments::AddParts(const std::vector<torch::Tensor>& parts, const torch::Tensor& counted, Sum* sum) {
  for (size_t i = 0; i < parts.size(); ++i) {
    (*sum)[i] += torch::bmm(counted, parts[i]).squeeze(1).to(torch::kInt64);
  }
  Carry(sum);
}

void TensorMoments::AddGroups(const TensorMoments& other, const torch::Tensor& kept) {
  const torch::Tensor counts = kept.to(torch::kInt64).unsqueeze(1);
  for (size_t i = 0; i < sum_.size(); ++i) {
    sum_[i] += (other.sum_[i] * counts).sum(0);
    square_sum_[i] += (other.square_sum_[i] * counts).sum(0);
  }
  Carry(&sum_);
  Carry(&square_sum_);
}

void TensorMoments::Carry(Sum* sum) {
  for (size_t i = 0; i + 1 < sum->size(); ++i) {
    (*sum)[i + 1] += (*sum)[i].bitwise_right_shift(kWordBits);  // Rounds down, also below 0.
    (*sum)[i].bitwise_and_(kWord);
  }
}

torch::Tensor TensorMoments::Words(const Sum& sum) const {
  const auto pair = [](const torch::Tensor& low, const torch::Tensor& high) {
    return low.bitwise_or(high.bitwise_left_shift(kWordBits));
  };
  return torch::stack({pair(sum[0], sum[1]), pair(sum[2], sum[3])}, 2).view({groups_, 2 * size_}).cpu();
}

}  // namespace skein
