// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

// How speed-up grows with the number of environments, as two laws see it. Pure functions.
namespace skein {

struct SpeedUp {
  double workers = 1;
  double speed_up = 1;
};

// Universal scalability law, Gunther 1993: S(N) = N / (1 + sigma (N - 1) + kappa N (N - 1)).
// With kappa = 0 it is Amdahl's law, S(N) = 1 / (sigma + (1 - sigma) / N), with sigma as the serial share.
struct ScalingLaw {
  double sigma = 0;      // Serial share: what does not get faster with more workers, 0-1.
  double kappa = 0;      // Crosstalk: what each pair of workers costs, >= 0.
  double r_squared = 0;  // Share of the speed-ups' variance that the law explains.
};

double PredictSpeedUp(const ScalingLaw& law, double workers);

// Least squares of the speed-ups themselves. Nullopt: there is no worker count above 1 (two of them for the universal
// law). REQUIRES: workers >= 1, all numbers finite.
std::optional<ScalingLaw> FitAmdahl(const std::vector<SpeedUp>& measured);
std::optional<ScalingLaw> FitUniversal(const std::vector<SpeedUp>& measured);

// The number of workers after which the law has more of them slow things down; nullopt if it never does.
std::optional<double> PeakWorkers(const ScalingLaw& law);

}  // namespace skein
