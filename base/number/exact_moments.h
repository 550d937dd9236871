// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace skein {

// Sums of vectors and of their squares in fixed-point integers, so that the order and the grouping of the vectors do
// not change a bit.   observations -> Add -> Words -> (wire) -> AddWords -> mean and variance An element counts in
// units of 2^-40, its square in units of 2^-48, both in 128 bits. A float of magnitude 2^-16 or more is added without
// rounding; kNumberBound and 2^39 rows fit. Allocates nothing after construction. Not thread-safe.
class ExactMoments {
 public:
  explicit ExactMoments(size_t size) : sum_(size), square_sum_(size) {}

  size_t size() const { return sum_.size(); }
  // row: [size]. REQUIRES: magnitudes of at most kNumberBound.
  void Add(const float* row);
  // Adds the sums of another one. REQUIRES: equal size.
  void Add(const ExactMoments& other);
  void Clear();

  // The sums in two's complement, the low word of each first: [2 * size] each.
  void WriteWords(int64_t* sum, int64_t* square_sum) const;
  // Adds sums that WriteWords wrote; they wrap around on overflow. REQUIRES: spans of 2 * size words.
  void AddWords(absl::Span<const int64_t> sum, absl::Span<const int64_t> square_sum);

  // Whether so many rows of numbers of at most kNumberBound can have the sums of element i: words from elsewhere may be
  // anything.
  bool Possible(size_t i, int64_t rows) const;

  // Mean and population variance of element i over `rows` rows. REQUIRES: rows > 0.
  double Mean(size_t i, double rows) const;
  double Variance(size_t i, double rows) const;

 private:
  __extension__ using Int128 = __int128;
  __extension__ using Uint128 = unsigned __int128;

  std::vector<Uint128> sum_, square_sum_;  // Two's complement.
};

}  // namespace skein
