// SPDX-License-Identifier: Apache-2.0
#include "base/number/exact_moments.h"

#include <algorithm>

#include "base/number/number_bounds.h"

namespace skein {
namespace {

constexpr double kUnits = 0x1p40;  // Of an element.
constexpr int kDropped = 32;       // Bits of a square in units of 2^-80.
constexpr long double kUnit = 0x1p-40L, kSquareUnit = 0x1p-48L;

}  // namespace

void ExactMoments::Add(const float* row) {
  for (size_t i = 0; i < sum_.size(); ++i) {
    const auto units = static_cast<int64_t>(static_cast<double>(row[i]) * kUnits);
    sum_[i] += static_cast<Uint128>(static_cast<Int128>(units));
    const auto magnitude = static_cast<uint64_t>(units < 0 ? -units : units);
    square_sum_[i] += (static_cast<Uint128>(magnitude) * magnitude + (Uint128{1} << (kDropped - 1))) >> kDropped;
  }
}

void ExactMoments::Add(const ExactMoments& other) {
  for (size_t i = 0; i < sum_.size(); ++i) {
    sum_[i] += other.sum_[i];
    square_sum_[i] += other.square_sum_[i];
  }
}

void ExactMoments::Clear() {
  std::fill(sum_.begin(), sum_.end(), Uint128{0});
  std::fill(square_sum_.begin(), square_sum_.end(), Uint128{0});
}

void ExactMoments::WriteWords(int64_t* sum, int64_t* square_sum) const {
  const auto write = [](const std::vector<Uint128>& from, int64_t* to) {
    for (const Uint128 value : from) {
      *to++ = static_cast<int64_t>(static_cast<uint64_t>(value));
      *to++ = static_cast<int64_t>(static_cast<uint64_t>(value >> 64));
    }
  };
  write(sum_, sum);
  write(square_sum_, square_sum);
}

void ExactMoments::AddWords(absl::Span<const int64_t> sum, absl::Span<const int64_t> square_sum) {
  const auto add = [](absl::Span<const int64_t> from, std::vector<Uint128>* to) {
    for (size_t i = 0; i < to->size(); ++i) {
      const auto low = static_cast<uint64_t>(from[2 * i]), high = static_cast<uint64_t>(from[2 * i + 1]);
      (*to)[i] += (static_cast<Uint128>(high) << 64) | low;
    }
  };
  add(sum, &sum_);
  add(square_sum, &square_sum_);
}

bool ExactMoments::Possible(size_t i, int64_t rows) const {
  if (rows == 0) return sum_[i] == 0 && square_sum_[i] == 0;
  constexpr long double kBound = kNumberBound, kRoom = 1 + 1e-15L;
  const long double mean = static_cast<long double>(static_cast<Int128>(sum_[i])) * kUnit / rows;
  const long double square = static_cast<long double>(static_cast<Int128>(square_sum_[i])) * kSquareUnit / rows;
  // Each square was rounded to a unit.
  return square >= 0 && square <= kBound * kBound * kRoom && mean * mean <= (square + kSquareUnit) * kRoom;
}

double ExactMoments::Mean(size_t i, double rows) const {
  return static_cast<double>(static_cast<long double>(static_cast<Int128>(sum_[i])) * kUnit / rows);
}

double ExactMoments::Variance(size_t i, double rows) const {
  const long double mean = static_cast<long double>(static_cast<Int128>(sum_[i])) * kUnit / rows;
  const long double square = static_cast<long double>(static_cast<Int128>(square_sum_[i])) * kSquareUnit / rows;
  return static_cast<double>(std::max(square - mean * mean, 0.0L));
}

}  // namespace skein
