// SPDX-License-Identifier: Apache-2.0
#include "learner/network/winsorize.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace skein {
namespace {

// Means 5, -2 and 7; deviations 2, 0.01 and 0.
RunningMoments Moments() {
  RunningMoments moments(3);
  moments.Restore(100, torch::tensor({5.0, -2.0, 7.0}), torch::tensor({4.0, 1e-4, 0.0}));
  return moments;
}

TEST(Winsorize, ClipsToTenDeviationsOrTenAboutTheMean) {
  const RunningMoments moments = Moments();
  const torch::Tensor numbers = torch::tensor({-1e6, -16.0, -14.9, -12.1, -11.9, -3.1, -2.9, -1.1, -0.9, 0.0,
                                               5.9,  6.1,   7.0,   7.9,   8.1,   16.9, 17.1, 24.9, 25.1, 1e6},
                                              torch::kFloat64);
  const torch::Tensor rows = numbers.view({-1, 1}).repeat({1, 3});
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    const torch::Tensor got = Winsorize(rows.to(type), moments);
    ASSERT_EQ(got.scalar_type(), type);
    for (int64_t i = 0; i < rows.size(0); ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        const double x = rows[i].to(type)[j].item<double>(), mean = moments.mean()[j].item<double>();
        const double reach = std::max(10 * std::sqrt(moments.variance()[j].item<double>()), 10.0);
        const double value = got[i][j].item<double>();
        if (std::abs(x - mean) < reach) {
          EXPECT_EQ(value, x);
        } else {
          EXPECT_FLOAT_EQ(value, x < mean ? mean - reach : mean + reach);
        }
      }
    }
  }
}

TEST(Winsorize, LeavesRowsAsTheyAreBeforeThereAreMoments) {
  const torch::Tensor rows = torch::tensor({-1e6, 0.0, 1e30}).view({3, 1});
  EXPECT_TRUE(Winsorize(rows, RunningMoments(1)).equal(rows));
}

TEST(Winsorize, KeepsWhatIsNotANumberAndTakesNoRows) {
  const torch::Tensor rows = torch::full({1, 3}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(Winsorize(rows, Moments()).isnan().all().item<bool>());
  EXPECT_EQ(Winsorize(torch::empty({0, 3}), Moments()).size(0), 0);
}

}  // namespace
}  // namespace skein
