// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_law.h"

#include <cmath>

#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::DoubleNear;

// S(N) = N / (1 + sigma (N - 1) + kappa N (N - 1)), written out once more.
double Speed(double sigma, double kappa, double n) { return n / (1 + sigma * (n - 1) + kappa * n * (n - 1)); }

std::vector<SpeedUp> Synthetic(double sigma, double kappa, const std::vector<double>& workers) {
  std::vector<SpeedUp> points;
  for (const double n : workers) points.push_back({n, Speed(sigma, kappa, n)});
  return points;
}

double Error(double sigma, double kappa, const std::vector<SpeedUp>& points) {
  double sum = 0;
  for (const SpeedUp& point : points) sum += std::pow(point.speed_up - Speed(sigma, kappa, point.workers), 2);
  return sum;
}

// The best of a coarse grid over [0, 1] x [0, 0.2], refined around the best five times.
ScalingLaw GridSearch(const std::vector<SpeedUp>& points, bool with_kappa) {
  double sigma = 0.5, kappa = with_kappa ? 0.1 : 0;
  double sigma_width = 0.5, kappa_width = with_kappa ? 0.1 : 0;
  for (int round = 0; round < 6; ++round) {
    const double sigma_center = sigma, kappa_center = kappa;
    for (int i = -50; i <= 50; ++i) {
      for (int j = with_kappa ? -50 : 0; j <= (with_kappa ? 50 : 0); ++j) {
        const double s = sigma_center + sigma_width * i / 50, k = kappa_center + kappa_width * j / 50;
        if (s < 0 || s > 1 || k < 0) continue;
        if (Error(s, k, points) < Error(sigma, kappa, points)) {
          sigma = s;
          kappa = k;
        }
      }
    }
    sigma_width /= 10;
    kappa_width /= 10;
  }
  return {.sigma = sigma, .kappa = kappa};
}

const std::vector<double> kWorkers = {1, 2, 4, 8, 16};

// The study's speed-ups, of 1, 2, 4, 8 runners with one environment and so on.
const std::vector<SpeedUp> kStudy = {{1, 1.00}, {2, 1.60}, {4, 2.72}, {8, 4.61}, {2, 1.71},
                                     {4, 2.92}, {8, 4.41}, {4, 2.85}, {8, 4.70}, {16, 5.24}};

TEST(ScalingLaw, IsAmdahlsWithoutCrosstalk) {
  // 1 / (0.25 + 0.75 / 4) = 1 / 0.4375.
  EXPECT_DOUBLE_EQ(PredictSpeedUp({.sigma = 0.25}, 4), 1 / 0.4375);
  EXPECT_DOUBLE_EQ(PredictSpeedUp({.sigma = 0.25, .kappa = 0.1}, 1), 1);
  EXPECT_DOUBLE_EQ(PredictSpeedUp({}, 16), 16);
}

TEST(ScalingLaw, FindsTheSharesThatMadeTheFigures) {
  const auto amdahl = FitAmdahl(Synthetic(0.13, 0, kWorkers));
  ASSERT_TRUE(amdahl);
  EXPECT_THAT(amdahl->sigma, DoubleNear(0.13, 1e-6));
  EXPECT_EQ(amdahl->kappa, 0);
  EXPECT_THAT(amdahl->r_squared, DoubleNear(1, 1e-9));
  const auto universal = FitUniversal(Synthetic(0.08, 0.004, kWorkers));
  ASSERT_TRUE(universal);
  EXPECT_THAT(universal->sigma, DoubleNear(0.08, 1e-6));
  EXPECT_THAT(universal->kappa, DoubleNear(0.004, 1e-7));
}

TEST(ScalingLaw, FitsNoWorseThanASlowSearch) {
  const std::vector<std::vector<SpeedUp>> samples = {
      kStudy,
      {{1, 1}, {2, 1.9}, {4, 2.4}, {8, 2.2}, {16, 1.5}},  // Gets slower.
      {{1, 1}, {2, 2.3}, {4, 5.0}, {8, 9.0}},             // Better than ideal: both shares stay at 0.
      {{1, 1}, {2, 0.7}, {4, 0.5}},                       // Slower than one.
      {{1, 1}, {2, 1.2}, {4, 2.6}, {8, 6.5}},             // Bends upwards.
  };
  for (const std::vector<SpeedUp>& points : samples) {
    const ScalingLaw amdahl = FitAmdahl(points).value();
    const ScalingLaw slow_amdahl = GridSearch(points, false);
    EXPECT_LE(Error(amdahl.sigma, 0, points), Error(slow_amdahl.sigma, 0, points) + 1e-6) << points[1].speed_up;
    EXPECT_THAT(amdahl.sigma, DoubleNear(slow_amdahl.sigma, 1e-3)) << points[1].speed_up;
    const ScalingLaw universal = FitUniversal(points).value();
    const ScalingLaw slow = GridSearch(points, true);
    EXPECT_LE(Error(universal.sigma, universal.kappa, points), Error(slow.sigma, slow.kappa, points) + 1e-6)
        << points[1].speed_up;
    EXPECT_GE(universal.sigma, 0);
    EXPECT_LE(universal.sigma, 1);
    EXPECT_GE(universal.kappa, 0);
  }
}

TEST(ScalingLaw, NeedsSeveralNumbersOfWorkers) {
  EXPECT_FALSE(FitAmdahl({}));
  EXPECT_FALSE(FitAmdahl({{1, 1}, {1, 1.1}}));
  EXPECT_TRUE(FitAmdahl({{1, 1}, {2, 1.5}}));
  EXPECT_FALSE(FitUniversal({{1, 1}, {2, 1.5}, {2, 1.6}}));
  EXPECT_TRUE(FitUniversal({{1, 1}, {2, 1.5}, {4, 2}}));
}

TEST(ScalingLaw, PeaksWhereCrosstalkEatsTheGain) {
  // sqrt((1 - 0.1) / 0.009) = 10.
  EXPECT_THAT(PeakWorkers({.sigma = 0.1, .kappa = 0.009}).value(), DoubleNear(10, 1e-9));
  EXPECT_EQ(PeakWorkers({.sigma = 0.9, .kappa = 2}).value(), 1);  // Never below one.
  EXPECT_FALSE(PeakWorkers({.sigma = 0.1}));
}

}  // namespace
}  // namespace skein
