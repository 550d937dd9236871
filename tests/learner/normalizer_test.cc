// SPDX-License-Identifier: Apache-2.0
#include "learner/network/normalizer.h"

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include <cmath>
#include <limits>

#include "policy/normalization.h"

namespace skein {
namespace {

// Rows with another offset and scale in each column.
torch::Tensor Rows(int64_t n, int64_t seed) {
  torch::Tensor rows = torch::empty({n, 3}, torch::kFloat64);
  double* x = rows.data_ptr<double>();
  for (int64_t i = 0; i < n * 3; ++i) {
    x[i] = std::sin(1.7 * i + seed) * std::pow(10.0, i % 3) + 100.0 * (i % 3) + seed;
  }
  return rows;
}

void ExpectTwoPassMoments(const RunningMoments& moments, const torch::Tensor& rows) {
  const int64_t n = rows.size(0);
  EXPECT_EQ(moments.count(), n);
  for (int64_t j = 0; j < rows.size(1); ++j) {
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) mean += rows[i][j].item<double>() / n;
    for (int64_t i = 0; i < n; ++i) squares += std::pow(rows[i][j].item<double>() - mean, 2);
    EXPECT_NEAR(moments.mean()[j].item<double>(), mean, 1e-10);
    EXPECT_NEAR(moments.variance()[j].item<double>(), squares / n, 1e-9 * (1 + squares / n));
  }
}

TEST(RunningMoments, BeginAtZeroMeanAndUnitVariance) {
  const RunningMoments moments(2);
  EXPECT_EQ(moments.count(), 0);
  EXPECT_TRUE(moments.mean().equal(torch::zeros({2}, torch::kFloat64)));
  EXPECT_TRUE(moments.variance().equal(torch::ones({2}, torch::kFloat64)));
}

TEST(RunningMoments, OneUpdateGivesTheMomentsOfItsRows) {
  // Columns 1, 3 and 10, 40: means 2 and 25, deviations 1 and 15.
  RunningMoments moments(2);
  moments.Update(torch::tensor({1.0, 10.0, 3.0, 40.0}).view({2, 2}));
  EXPECT_TRUE(moments.mean().equal(torch::tensor({2.0, 25.0}, torch::kFloat64)));
  EXPECT_TRUE(moments.variance().equal(torch::tensor({1.0, 225.0}, torch::kFloat64)));
}

TEST(RunningMoments, MergedUpdatesEqualOnePassOverAllRows) {
  const torch::Tensor a = Rows(7, 1), b = Rows(1, 2), c = Rows(30, 3);
  RunningMoments moments(3);
  moments.Update(a);
  moments.Update(b);
  moments.Update(c);
  ExpectTwoPassMoments(moments, torch::cat({a, b, c}));
}

TEST(RunningMoments, MergedMomentsEqualOnePassOverAllRows) {
  const torch::Tensor a = Rows(7, 1), b = Rows(1, 2), c = Rows(30, 3);
  RunningMoments moments(3), later(3);
  moments.Update(a);
  moments.Merge(RunningMoments(3));  // Of no rows.
  later.Update(b);
  later.Update(c);
  moments.Merge(later);
  ExpectTwoPassMoments(moments, torch::cat({a, b, c}));
  RunningMoments empty(3);
  empty.Merge(later);
  ExpectTwoPassMoments(empty, torch::cat({b, c}));
}

TEST(RunningMoments, NoRowsChangeNothing) {
  RunningMoments moments(3);
  moments.Update(torch::empty({0, 3}));
  EXPECT_EQ(moments.count(), 0);
  EXPECT_TRUE(moments.variance().equal(torch::ones({3}, torch::kFloat64)));
  const torch::Tensor rows = Rows(7, 1);
  moments.Update(rows);
  const torch::Tensor variance = moments.variance().clone();
  moments.Update(torch::empty({0, 3}));
  ExpectTwoPassMoments(moments, rows);
  EXPECT_TRUE(moments.variance().equal(variance));
}

TEST(RunningMoments, TakeFloatsAndStridesAndGradients) {
  const torch::Tensor wide = Rows(8, 1).to(torch::kFloat32).repeat({1, 2}).requires_grad_();
  const torch::Tensor rows = wide.slice(1, 0, 6, 2);
  RunningMoments moments(3);
  moments.Update(rows);
  ExpectTwoPassMoments(moments, rows.detach().to(torch::kFloat64));
  EXPECT_FALSE(moments.mean().requires_grad());
}

TEST(RunningMoments, KeepASmallVarianceBesideALargeMean) {
  // 1e6 +- 0.001: single precision, or sums of squares, would lose the variance of 1e-6.
  RunningMoments moments(1);
  for (int i = 0; i < 100; ++i) {
    moments.Update(torch::tensor({1e6 + 0.001, 1e6 - 0.001}, torch::kFloat64).view({2, 1}));
  }
  EXPECT_NEAR(moments.variance().item<double>(), 1e-6, 1e-11);
}

TEST(RunningMoments, CopiesShareNoMemory) {
  RunningMoments original(3);
  original.Update(Rows(5, 1));
  RunningMoments copy(original), assigned(3);
  assigned = original;
  original.Update(Rows(9, 2));
  ExpectTwoPassMoments(copy, Rows(5, 1));
  ExpectTwoPassMoments(assigned, Rows(5, 1));
}

TEST(RunningMoments, GoOnToTheBitAfterRestore) {
  RunningMoments original(3), restored(3);
  original.Update(Rows(5, 1));
  original.Update(Rows(11, 2));
  restored.Restore(original.count(), original.mean(), original.variance());
  original.Update(Rows(7, 3));
  restored.Update(Rows(7, 3));
  EXPECT_EQ(restored.count(), original.count());
  EXPECT_TRUE(restored.mean().equal(original.mean()));
  EXPECT_TRUE(restored.variance().equal(original.variance()));
}

TEST(RunningMoments, RefuseRowsOfAnotherSize) {
  RunningMoments moments(3);
  EXPECT_THROW(moments.Update(torch::zeros({5, 4})), c10::Error);
}

TEST(ObsScale, IdentityOnlyClips) {
  const torch::Tensor obs = torch::tensor({-12.0f, -10.0f, 0.5f, 11.0f}).view({2, 2});
  const torch::Tensor got = ObsScale::Identity(2).Apply(obs);
  EXPECT_TRUE(got.equal(torch::tensor({-10.0f, -10.0f, 0.5f, 10.0f}).view({2, 2})));
  EXPECT_EQ(obs[0][0].item<float>(), -12.0f);
}

TEST(ObsScale, StandardisesByTheMoments) {
  RunningMoments moments(3);
  moments.Update(Rows(50, 1));
  const ObsScale scale = ObsScale::From(moments);
  EXPECT_EQ(scale.mean.scalar_type(), torch::kFloat32);
  EXPECT_EQ(scale.inv_std.scalar_type(), torch::kFloat32);
  const torch::Tensor obs = Rows(6, 2).to(torch::kFloat32).view({2, 3, 3});
  const torch::Tensor got = scale.Apply(obs);
  ASSERT_EQ(got.sizes(), obs.sizes());
  for (int64_t i = 0; i < 18; ++i) {
    const double mean = moments.mean()[i % 3].item<double>();
    const double std = std::sqrt(moments.variance()[i % 3].item<double>() + 1e-8);
    const double x = obs.flatten()[i].item<double>();
    EXPECT_NEAR(got.flatten()[i].item<double>(), std::min(10.0, std::max(-10.0, (x - mean) / std)), 1e-5);
  }
}

TEST(ObsScale, AConstantColumnStaysFinite) {
  // Variance 0: 0.0001 / sqrt(1e-8) = 1, and 1 / sqrt(1e-8) = 10000, clipped to 10.
  RunningMoments moments(1);
  moments.Update(torch::full({4, 1}, 2.0, torch::kFloat64));
  const torch::Tensor got = ObsScale::From(moments).Apply(torch::tensor({2.0f, 2.0001f, 3.0f}).view({3, 1}));
  EXPECT_EQ(got[0].item<float>(), 0);
  EXPECT_NEAR(got[1].item<float>(), 1, 0.01);
  EXPECT_EQ(got[2].item<float>(), 10);
}

TEST(ObsScale, ReadsStridedObservations) {
  const torch::Tensor wide = torch::arange(12, torch::kFloat32).view({2, 6});
  const torch::Tensor got = ObsScale::Identity(3).Apply(wide.slice(1, 0, 6, 2));
  EXPECT_TRUE(got.equal(torch::tensor({0.f, 2.f, 4.f, 6.f, 8.f, 10.f}).view({2, 3})));
}

TEST(RunningMoments, AGpuComputesWhatTheCpuDoes) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "Torch sees no GPU here";
  torch::manual_seed(8);
  const torch::Tensor rows = torch::randn({300'000, 3}) * torch::tensor({1.0f, 1e-3f, 1e3f}) + 5;
  RunningMoments want(3), got(3);
  for (int i = 0; i < 2; ++i) {
    want.Update(rows);
    got.Update(rows.to(torch::kCUDA));
  }
  EXPECT_EQ(got.count(), want.count());
  EXPECT_TRUE(torch::allclose(got.mean(), want.mean(), 1e-9, 1e-9));
  EXPECT_TRUE(torch::allclose(got.variance(), want.variance(), 1e-9, 0));
}

TEST(ObsScale, NotANumberStaysVisible) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(ObsScale::Identity(1).Apply(torch::full({1, 1}, nan)).item<float>()));
}

TEST(ObsScale, TakesNoRowsAndRefusesAnotherSizeOrType) {
  const ObsScale scale = ObsScale::Identity(3);
  EXPECT_EQ(scale.Apply(torch::zeros({0, 3})).sizes(), at::IntArrayRef({0, 3}));
  EXPECT_THROW(scale.Apply(torch::zeros({2, 4})), c10::Error);
  EXPECT_THROW(scale.Apply(torch::zeros({2, 3}, torch::kFloat64)), c10::Error);
}

// A policy read from a checkpoint makes its scale without Torch.
TEST(Normalization, IsTheObsScaleToTheBit) {
  const torch::Tensor mean = torch::randn({300}, torch::kFloat64) * 3;
  const torch::Tensor variance = torch::rand({300}, torch::kFloat64) * torch::logspace(-9, 9, 300, 10, torch::kFloat64);
  RunningMoments moments(300);
  moments.Restore(7, mean, variance);
  const ObsScale want = ObsScale::From(moments);
  const Normalization got = Normalization::From({mean.data_ptr<double>(), 300}, {variance.data_ptr<double>(), 300});
  EXPECT_TRUE(torch::tensor(got.mean).equal(want.mean));
  EXPECT_TRUE(torch::tensor(got.inv_std).equal(want.inv_std));
  const torch::Tensor obs = torch::randn({5, 300}) * 10;
  torch::Tensor out = torch::empty_like(obs);
  got.Apply(obs.data_ptr<float>(), 5, out.data_ptr<float>());
  EXPECT_TRUE(out.equal(want.Apply(obs)));
}

}  // namespace
}  // namespace skein
