// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_law.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace skein {
namespace {

double SquaredError(const ScalingLaw& law, const std::vector<SpeedUp>& measured) {
  double sum = 0;
  for (const SpeedUp& one : measured) sum += std::pow(one.speed_up - PredictSpeedUp(law, one.workers), 2);
  return sum;
}

size_t DistinctWorkersAboveOne(const std::vector<SpeedUp>& measured) {
  std::set<double> workers;
  for (const SpeedUp& one : measured) {
    if (one.workers > 1) workers.insert(one.workers);
  }
  return workers.size();
}

// Levenberg-Marquardt from `law` over the parameters that are free, kept within their bounds.
ScalingLaw Minimize(ScalingLaw law, bool sigma_free, bool kappa_free, const std::vector<SpeedUp>& measured) {
  constexpr int kMaxSteps = 500;
  double damping = 1e-3;
  double error = SquaredError(law, measured);
  for (int step = 0; step < kMaxSteps && damping < 1e12; ++step) {
    // Normal equations: dS/dsigma = -S^2 (N - 1) / N, dS/dkappa = -S^2 (N - 1).
    double a = 0, b = 0, c = 0, u = 0, v = 0;
    for (const SpeedUp& one : measured) {
      const double predicted = PredictSpeedUp(law, one.workers);
      const double slope = -predicted * predicted * (one.workers - 1);
      const double by_sigma = sigma_free ? slope / one.workers : 0;
      const double by_kappa = kappa_free ? slope : 0;
      const double residual = one.speed_up - predicted;
      a += by_sigma * by_sigma;
      b += by_sigma * by_kappa;
      c += by_kappa * by_kappa;
      u += by_sigma * residual;
      v += by_kappa * residual;
    }
    const double left = a * (1 + damping) + (sigma_free ? 1e-300 : 1);
    const double right = c * (1 + damping) + (kappa_free ? 1e-300 : 1);
    const double determinant = left * right - b * b;
    if (!(determinant > 0)) return law;
    ScalingLaw next = law;
    next.sigma = std::clamp(law.sigma + (right * u - b * v) / determinant, 0.0, 1.0);
    next.kappa = std::max(0.0, law.kappa + (left * v - b * u) / determinant);
    const double next_error = SquaredError(next, measured);
    if (!(next_error < error)) {
      damping *= 10;
      continue;
    }
    law = next;
    error = next_error;
    damping = std::max(damping / 10, 1e-12);
  }
  return law;
}

double RSquared(const ScalingLaw& law, const std::vector<SpeedUp>& measured) {
  double mean = 0, variation = 0;
  for (const SpeedUp& one : measured) mean += one.speed_up / static_cast<double>(measured.size());
  for (const SpeedUp& one : measured) variation += std::pow(one.speed_up - mean, 2);
  return variation > 0 ? 1 - SquaredError(law, measured) / variation : 0;
}

}  // namespace

double PredictSpeedUp(const ScalingLaw& law, double workers) {
  return workers / (1 + law.sigma * (workers - 1) + law.kappa * workers * (workers - 1));
}

std::optional<ScalingLaw> FitAmdahl(const std::vector<SpeedUp>& measured) {
  if (DistinctWorkersAboveOne(measured) < 1) return std::nullopt;
  ScalingLaw law = Minimize({.sigma = 0.3}, true, false, measured);
  law.r_squared = RSquared(law, measured);
  return law;
}

std::optional<ScalingLaw> FitUniversal(const std::vector<SpeedUp>& measured) {
  if (DistinctWorkersAboveOne(measured) < 2) return std::nullopt;
  // The best law may lie on a bound, where the search over both parameters can stop early: search there too.
  ScalingLaw best = Minimize({.sigma = 0.3, .kappa = 0.01}, true, true, measured);
  for (const ScalingLaw& other :
       {Minimize({.sigma = 0.3}, true, false, measured), Minimize({.kappa = 0.01}, false, true, measured)}) {
    if (SquaredError(other, measured) < SquaredError(best, measured)) best = other;
  }
  best = Minimize(best, true, true, measured);
  best.r_squared = RSquared(best, measured);
  return best;
}

std::optional<double> PeakWorkers(const ScalingLaw& law) {
  if (law.kappa <= 0) return std::nullopt;
  return std::max(1.0, std::sqrt((1 - law.sigma) / law.kappa));
}

}  // namespace skein
