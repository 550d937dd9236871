// SPDX-License-Identifier: Apache-2.0
#include "policy/dense_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/policy/simd_levels.h"

namespace skein {
namespace {

std::vector<float> RandomFloats(int64_t size, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values) value = normal(engine);
  return values;
}

double Function(ActivationKind kind, double x) {
  if (kind == ActivationKind::kTanh) return std::tanh(x);
  if (kind == ActivationKind::kElu) return x > 0 ? x : std::expm1(x);
  return x > 0 ? x : 0;
}

constexpr ActivationKind kKinds[] = {ActivationKind::kTanh, ActivationKind::kElu, ActivationKind::kRelu};

TEST(Multiply, EqualsTheDefinitionForEveryTile) {
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    // Heights with every kind of remainder, widths with each combination of 64, 32 and 16.
    for (const int64_t rows : {1, 2, 5, 6, 13, 31}) {
      for (const int64_t columns : {16, 32, 48, 64, 112, 192}) {
        for (const int64_t inner : {0, 1, 17}) {
          const std::vector<float> a = RandomFloats(rows * inner, 1), b = RandomFloats(inner * columns, 2),
                                   bias = RandomFloats(columns, 3);
          std::vector<float> out(rows * columns, 99);
          Multiply({rows, inner, columns, a.data(), inner, 1, b.data(), columns, bias.data(), 0, out.data(), columns});
          for (int64_t i = 0; i < rows; ++i) {
            for (int64_t j = 0; j < columns; ++j) {
              double want = bias[j];
              for (int64_t k = 0; k < inner; ++k) want += static_cast<double>(a[i * inner + k]) * b[k * columns + j];
              ASSERT_NEAR(out[i * columns + j], want, 1e-5) << rows << " " << columns << " " << inner;
            }
          }
        }
      }
    }
  }
}

TEST(Multiply, TransposesByItsStridesAndAddsToWhatIsThere) {
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    // a stands as [3, 7]; its transpose [7, 3] times b [3, 16] is added to what stands in rows of 20.
    const std::vector<float> a = RandomFloats(21, 1), b = RandomFloats(48, 2), before = RandomFloats(140, 3);
    std::vector<float> out = before;
    Multiply({7, 3, 16, a.data(), 1, 7, b.data(), 16, out.data(), 20, out.data(), 20});
    for (int64_t i = 0; i < 7; ++i) {
      for (int64_t j = 0; j < 20; ++j) {
        double want = before[i * 20 + j];
        for (int64_t k = 0; k < 3 && j < 16; ++k) want += static_cast<double>(a[k * 7 + i]) * b[k * 16 + j];
        ASSERT_NEAR(out[i * 20 + j], want, 1e-5);
      }
    }
  }
}

TEST(Multiply, WithoutInitBeginsAtZero) {
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    const std::vector<float> b(16, 3);
    const float two = 2;
    std::vector<float> out(16, 99);
    Multiply({1, 1, 16, &two, 0, 0, b.data(), 16, nullptr, 0, out.data(), 16});
    EXPECT_EQ(out, std::vector<float>(16, 6));  // 2 * 3
  }
}

TEST(Multiply, ARowDoesNotDependOnTheOthers) {
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    const std::vector<float> a = RandomFloats(23 * 64, 1), b = RandomFloats(64 * 112, 2);
    std::vector<float> all(23 * 112), one(112);
    Multiply({23, 64, 112, a.data(), 64, 1, b.data(), 112, nullptr, 0, all.data(), 112});
    for (int64_t i = 0; i < 23; ++i) {
      Multiply({1, 64, 112, a.data() + i * 64, 64, 1, b.data(), 112, nullptr, 0, one.data(), 112});
      ASSERT_TRUE(std::equal(one.begin(), one.end(), all.begin() + i * 112)) << i;  // To the bit.
    }
  }
}

TEST(Transpose, SwapsRowsAndColumns) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>(1, 1), {3, 40}, {16, 16}, {37, 5}}) {
    const std::vector<float> in = RandomFloats(rows * columns, 1);
    std::vector<float> out(columns * (rows + 2), 99);
    Transpose(in.data(), rows, columns, out.data(), rows + 2);
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows + 2; ++i) {
        ASSERT_EQ(out[j * (rows + 2) + i], i < rows ? in[i * columns + j] : 99);
      }
    }
  }
}

TEST(AddTo, AddsAsManyAsAskedFor) {
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    for (const int64_t size : {0, 1, 16, 37}) {
      const std::vector<float> from = RandomFloats(40, 1), before = RandomFloats(40, 2);
      std::vector<float> to = before;
      AddTo(size, from.data(), to.data());
      for (int64_t i = 0; i < 40; ++i) ASSERT_EQ(to[i], i < size ? before[i] + from[i] : before[i]) << size;
    }
  }
}

TEST(Activate, EqualsTheFunction) {
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    for (const ActivationKind kind : kKinds) {
      std::vector<float> x(4096);
      for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * (static_cast<float>(i) - 2048);
      std::vector<float> y = x;
      Activate(kind, y.data(), static_cast<int64_t>(y.size()));
      for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], Function(kind, x[i]), 2e-7) << x[i];
    }
  }
}

TEST(Activate, KeepsWhatIsNoNumberAndLimits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    for (const ActivationKind kind : kKinds) {
      std::vector<float> x(16, 0);
      x[1] = std::numeric_limits<float>::quiet_NaN();
      x[2] = kInfinity;
      x[3] = -kInfinity;
      Activate(kind, x.data(), 16);
      EXPECT_EQ(x[0], 0);  // Padding stays zero.
      EXPECT_TRUE(std::isnan(x[1]));
      EXPECT_EQ(x[2], kind == ActivationKind::kTanh ? 1 : kInfinity);
      EXPECT_EQ(x[3], kind == ActivationKind::kRelu ? 0 : -1);
    }
  }
}

TEST(ActivateBackward, EqualsTheDifferenceQuotient) {
  for (const SimdLevel level : SimdLevels()) {
    const ScopedSimdLevel scoped(level);
    for (const ActivationKind kind : kKinds) {
      std::vector<float> y, delta;
      std::vector<double> want;
      for (int i = 0; i < 64; ++i) {
        const double x = 0.1 * i - 3.17, h = 1e-5;
        y.push_back(static_cast<float>(Function(kind, x)));
        delta.push_back(static_cast<float>(i));
        want.push_back(i * (Function(kind, x + h) - Function(kind, x - h)) / (2 * h));
      }
      ActivateBackward(kind, y.data(), delta.data(), 64);
      for (int i = 0; i < 64; ++i) ASSERT_NEAR(delta[i], want[i], 2e-5) << i;
    }
  }
}

}  // namespace
}  // namespace skein
