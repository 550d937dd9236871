// SPDX-License-Identifier: Apache-2.0
#include "learner/network/normalizer.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <vector>

#include "policy/dense_kernels.h"
#include "policy/normalization.h"

namespace skein {
namespace {

constexpr int64_t kRowsAtOnce = int64_t{1} << 18;

}  // namespace

RunningMoments::RunningMoments(int64_t size)
    : mean_(torch::zeros({size}, torch::kFloat64)), variance_(torch::ones({size}, torch::kFloat64)) {}

RunningMoments::RunningMoments(const RunningMoments& other)
    : count_(other.count_), mean_(other.mean_.clone()), variance_(other.variance_.clone()) {}

RunningMoments& RunningMoments::operator=(const RunningMoments& other) {
  Restore(other.count_, other.mean_, other.variance_);
  return *this;
}

void RunningMoments::Restore(double count, const torch::Tensor& mean, const torch::Tensor& variance) {
  count_ = count;
  mean_ = mean.detach().to(torch::kCPU, torch::kFloat64, /*non_blocking=*/false, /*copy=*/true).contiguous();
  variance_ = variance.detach().to(torch::kCPU, torch::kFloat64, /*non_blocking=*/false, /*copy=*/true).contiguous();
}

void RunningMoments::Update(const torch::Tensor& rows) {
  const int64_t size = mean_.size(0);
  TORCH_CHECK(rows.dim() == 2 && rows.size(1) == size, "rows: got shape ", rows.sizes(), ", want [B, ", size, "]");
  const int64_t n = rows.size(0);
  if (n == 0) return;
  if (!rows.is_cpu()) return UpdateOnDevice(rows.detach());
  const torch::Tensor batch = rows.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  const double* const x = batch.data_ptr<double>();

  std::vector<double> batch_mean(size), batch_squares(size);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < size; ++j) batch_mean[j] += x[i * size + j];
  }
  for (double& mean : batch_mean) mean /= n;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < size; ++j) {
      const double deviation = x[i * size + j] - batch_mean[j];
      batch_squares[j] += deviation * deviation;
    }
  }

  Merge(static_cast<double>(n), batch_mean.data(), batch_squares.data());
}

// Two passes over some of the rows at a time, as doubles; only sums go to the CPU.
void RunningMoments::UpdateOnDevice(const torch::Tensor& rows) {
  for (int64_t first = 0; first < rows.size(0); first += kRowsAtOnce) {
    const int64_t n = std::min(kRowsAtOnce, rows.size(0) - first);
    const torch::Tensor batch = rows.narrow(0, first, n).to(torch::kFloat64);
    const torch::Tensor batch_mean = batch.mean(0);
    const torch::Tensor sums = torch::stack({batch_mean, (batch - batch_mean).square_().sum(0)}).cpu();
    Merge(static_cast<double>(n), sums[0].data_ptr<double>(), sums[1].data_ptr<double>());
  }
}

void RunningMoments::Merge(const RunningMoments& other) {
  const int64_t size = mean_.size(0);
  TORCH_CHECK(other.mean_.size(0) == size, "moments: got size ", other.mean_.size(0), ", want ", size);
  if (other.count_ == 0) return;
  const torch::Tensor squares = other.variance_ * other.count_;
  Merge(other.count_, other.mean_.data_ptr<double>(), squares.data_ptr<double>());
}

void RunningMoments::Merge(double n, const double* batch_mean, const double* batch_squares) {
  const int64_t size = mean_.size(0);
  const double total = count_ + n;
  double* const mean = mean_.data_ptr<double>();
  double* const variance = variance_.data_ptr<double>();
  for (int64_t j = 0; j < size; ++j) {
    const double delta = batch_mean[j] - mean[j];
    mean[j] += delta * n / total;
    variance[j] = (variance[j] * count_ + batch_squares[j] + delta * delta * count_ * n / total) / total;
  }
  count_ = total;
}

ObsScale ObsScale::Identity(int64_t size) {
  return {torch::zeros({size}, torch::kFloat32), torch::ones({size}, torch::kFloat32)};
}

ObsScale ObsScale::From(const RunningMoments& moments) {
  // The change of type copies: a scale shares no memory with the moments.
  return {moments.mean().to(torch::kFloat32), (moments.variance() + kNormalizationEpsilon).rsqrt().to(torch::kFloat32)};
}

torch::Tensor ObsScale::Apply(const torch::Tensor& obs) const {
  torch::NoGradGuard no_grad;
  const int64_t size = mean.size(0);
  TORCH_CHECK(obs.dim() >= 1 && obs.size(-1) == size && obs.scalar_type() == torch::kFloat32, "obs: got ",
              obs.scalar_type(), " of shape ", obs.sizes(), ", want Float [..., ", size, "]");
  if (!obs.is_cpu()) return ((obs - mean) * inv_std).clamp_(-kNormalizationClip, kNormalizationClip);

  const torch::Tensor in = obs.contiguous();
  torch::Tensor out = torch::empty_like(in);
  Apply(in.data_ptr<float>(), size == 0 ? 0 : in.numel() / size, out.data_ptr<float>());
  return out;
}

void ObsScale::Apply(const float* obs, int64_t rows, float* out) const {
  ScaleAndClip(obs, rows, mean.size(0), mean.data_ptr<float>(), inv_std.data_ptr<float>(), kNormalizationClip, out);
}

}  // namespace skein
