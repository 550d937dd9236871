// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/direction_admission.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/number/exact_moments.h"
#include "base/number/number_bounds.h"

namespace skein {
namespace {

absl::Status CheckSign(const CheckedFragment& checked, const std::string& sign, uint64_t* sum) {
  const FragmentShape& shape = checked.schema->shape;
  const int64_t least = shape.direction_episodes, most = least * shape.max_episode_steps;
  const auto steps = checked.values<int64_t>("steps_" + sign);
  const auto returns = checked.values<double>("return_" + sign);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] < least || steps[i] > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("fields.steps_", sign, ": element ", i, " is ", steps[i], ", want ", least, " to ", most));
    }
    const double bound = static_cast<double>(steps[i]) * double{kNumberBound};
    if (std::isfinite(returns[i]) && std::abs(returns[i]) > bound) {
      return absl::InvalidArgumentError(absl::StrCat("fields.return_", sign, ": element ", i, " is ", returns[i],
                                                     ", want at most ", bound, " in magnitude, or no number"));
    }
    *sum += static_cast<uint64_t>(steps[i]);
  }
  return absl::OkStatus();
}

// The sums are of one observation for each step of the directions with finite returns.
absl::Status CheckObservations(const CheckedFragment& checked) {
  const auto sum = checked.values<int64_t>("obs_sum"), square_sum = checked.values<int64_t>("obs_square_sum");
  const auto plus = checked.values<double>("return_plus"), minus = checked.values<double>("return_minus");
  const auto steps_plus = checked.values<int64_t>("steps_plus"), steps_minus = checked.values<int64_t>("steps_minus");
  int64_t rows = 0;
  for (size_t d = 0; d < plus.size(); ++d) {
    if (std::isfinite(plus[d]) && std::isfinite(minus[d])) rows += steps_plus[d] + steps_minus[d];
  }
  ExactMoments moments(sum.size() / 2);
  moments.AddWords(sum, square_sum);
  for (size_t i = 0; i < moments.size(); ++i) {
    if (moments.Possible(i, rows)) continue;
    return absl::InvalidArgumentError(absl::StrCat("fields.obs_sum, fields.obs_square_sum: element ", i,
                                                   " of the observations: no ", rows, " numbers have these sums"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckDirections(const CheckedFragment& checked, uint64_t env_steps) {
  uint64_t sum = 0;
  for (const char* const sign : {"plus", "minus"}) {
    if (absl::Status s = CheckSign(checked, sign, &sum); !s.ok()) return s;
  }
  if (sum != env_steps) {
    return absl::InvalidArgumentError(absl::StrCat("env_steps: got ", env_steps, ", the directions have ", sum));
  }
  return CheckObservations(checked);
}

}  // namespace skein
