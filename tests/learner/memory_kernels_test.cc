// SPDX-License-Identifier: Apache-2.0
// Steps of a GRU and an LSTM against the formulas of policy/recurrent.h, their derivatives against difference
// quotients.
#include "learner/optimize/memory_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "tests/policy/simd_levels.h"

namespace skein {
namespace {

constexpr int64_t kRows = 3, kWidth = 32, kUnits = kRows * kWidth;

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<float> Normals(int64_t size, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) value = normal(engine);
  return values;
}

// One unit: its four sums, and the state before the step, h of a GRU or c of an LSTM.
struct Unit {
  double sum[4], before;
};
struct After {
  double h, c = 0;
};

After Gru(const Unit& unit) {
  const double r = Logistic(unit.sum[0]), z = Logistic(unit.sum[1]), n = std::tanh(unit.sum[3] + r * unit.sum[2]);
  return {(1 - z) * n + z * unit.before};
}

After Lstm(const Unit& unit) {
  const double c = Logistic(unit.sum[1]) * unit.before + Logistic(unit.sum[0]) * std::tanh(unit.sum[2]);
  return {Logistic(unit.sum[3]) * std::tanh(c), c};
}

size_t At(int64_t row, int64_t part, int64_t j) { return static_cast<size_t>((row * 4 + part) * kWidth + j); }

Unit UnitAt(const std::vector<float>& gate, const std::vector<float>& before, int64_t row, int64_t j) {
  Unit unit{{}, before[static_cast<size_t>(row * kWidth + j)]};
  for (int64_t part = 0; part < 4; ++part) unit.sum[part] = gate[At(row, part, j)];
  return unit;
}

// d(loss)/d(*what) by a difference quotient.
double Derivative(const std::function<double(const Unit&)>& loss, Unit unit, double Unit::*what) {
  constexpr double kStep = 1e-5;
  unit.*what += kStep;
  const double more = loss(unit);
  unit.*what -= 2 * kStep;
  return (more - loss(unit)) / (2 * kStep);
}
double Derivative(const std::function<double(const Unit&)>& loss, Unit unit, int64_t part) {
  constexpr double kStep = 1e-5;
  unit.sum[part] += kStep;
  const double more = loss(unit);
  unit.sum[part] -= 2 * kStep;
  return (more - loss(unit)) / (2 * kStep);
}

TEST(MemoryKernels, AGrusStepAndItsDerivativesAreTheFormulas) {
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    const std::vector<float> sums = Normals(4 * kUnits, 1), before = Normals(kUnits, 2), delta = Normals(kUnits, 3),
                             later = Normals(kUnits, 4);
    std::vector<float> gate = sums, output(kUnits), carry = later;
    GruForward(kRows, kWidth, gate.data(), before.data(), kWidth, output.data());
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t j = 0; j < kWidth; ++j) {
        ASSERT_NEAR(output[static_cast<size_t>(row * kWidth + j)], Gru(UnitAt(sums, before, row, j)).h, 1e-6);
      }
    }
    GruBackward(kRows, kWidth, gate.data(), before.data(), kWidth, delta.data(), carry.data());
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t j = 0; j < kWidth; ++j) {
        const auto at = static_cast<size_t>(row * kWidth + j);
        const Unit unit = UnitAt(sums, before, row, j);
        const auto loss = [&](const Unit& one) { return (delta[at] + later[at]) * Gru(one).h; };
        for (int64_t part = 0; part < 4; ++part) {
          ASSERT_NEAR(gate[At(row, part, j)], Derivative(loss, unit, part), 2e-6) << part;
        }
        ASSERT_NEAR(carry[at], Derivative(loss, unit, &Unit::before), 2e-6);
      }
    }
  }
}

TEST(MemoryKernels, AnLstmsStepAndItsDerivativesAreTheFormulas) {
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    const std::vector<float> sums = Normals(4 * kUnits, 1), before = Normals(kUnits, 2), delta = Normals(kUnits, 3),
                             later = Normals(kUnits, 4), cell_later = Normals(kUnits, 5);
    std::vector<float> gate = sums, cell(kUnits), tanh_cell(kUnits), output(kUnits), cell_carry = cell_later;
    LstmForward(kRows, kWidth, gate.data(), before.data(), cell.data(), tanh_cell.data(), output.data());
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t j = 0; j < kWidth; ++j) {
        const auto at = static_cast<size_t>(row * kWidth + j);
        const After want = Lstm(UnitAt(sums, before, row, j));
        ASSERT_NEAR(output[at], want.h, 1e-6);
        ASSERT_NEAR(cell[at], want.c, 1e-6);
        ASSERT_NEAR(tanh_cell[at], std::tanh(want.c), 1e-6);
      }
    }
    LstmBackward(kRows, kWidth, gate.data(), tanh_cell.data(), before.data(), delta.data(), later.data(),
                 cell_carry.data());
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t j = 0; j < kWidth; ++j) {
        const auto at = static_cast<size_t>(row * kWidth + j);
        const Unit unit = UnitAt(sums, before, row, j);
        const auto loss = [&](const Unit& one) {
          const After after = Lstm(one);
          return (delta[at] + later[at]) * after.h + cell_later[at] * after.c;
        };
        for (int64_t part = 0; part < 4; ++part) {
          ASSERT_NEAR(gate[At(row, part, j)], Derivative(loss, unit, part), 2e-6) << part;
        }
        ASSERT_NEAR(cell_carry[at], Derivative(loss, unit, &Unit::before), 2e-6);
      }
    }
  }
}

// What fills up a row of gates whose weights and states are zeros stays zero, forwards and backwards.
TEST(MemoryKernels, PaddingStaysZero) {
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    const std::vector<float> zeros(16);
    const auto is_zero = [](const std::vector<float>& all) {
      return std::all_of(all.begin(), all.end(), [](float x) { return x == 0; });
    };
    std::vector<float> gate(64), output(16, 9), cell(16, 9), tanh_cell(16, 9), carry(16);
    LstmForward(1, 16, gate.data(), zeros.data(), cell.data(), tanh_cell.data(), output.data());
    EXPECT_TRUE(is_zero(output) && is_zero(cell) && is_zero(tanh_cell));
    LstmBackward(1, 16, gate.data(), tanh_cell.data(), zeros.data(), zeros.data(), zeros.data(), carry.data());
    EXPECT_TRUE(is_zero(gate) && is_zero(carry));
    output.assign(16, 9);
    GruForward(1, 16, gate.data(), zeros.data(), 16, output.data());
    EXPECT_TRUE(is_zero(output));
    GruBackward(1, 16, gate.data(), zeros.data(), 16, zeros.data(), carry.data());
    EXPECT_TRUE(is_zero(gate) && is_zero(carry));
  }
}

}  // namespace
}  // namespace skein
