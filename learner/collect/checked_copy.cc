// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/checked_copy.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/number/number_bounds.h"
#include "policy/simd.h"

namespace skein {
namespace {

// The bits of a vector's floats.
template <typename V>
struct BitsOf;
template <>
struct BitsOf<Float4> {
  using Type = int32_t __attribute__((vector_size(16)));
};
template <>
struct BitsOf<Float8> {
  using Type = int32_t __attribute__((vector_size(32)));
};
template <>
struct BitsOf<Float16> {
  using Type = int32_t __attribute__((vector_size(64)));
};

struct CopyRowsBody {
  template <typename V>
  static SKEIN_INLINE void Copy(const char* from, int32_t most, float* to, typename BitsOf<V>::Type& found) {
    constexpr int32_t kMagnitude = 0x7fffffff;  // Without signs, floats are ordered as their bits are, NaN above all.
    typename BitsOf<V>::Type bits;
    std::memcpy(&bits, from, sizeof(bits));
    std::memcpy(to, &bits, sizeof(bits));
    found |= (bits & kMagnitude) > most;
  }

  template <typename V>
  static SKEIN_INLINE void Run(const char* from, size_t rows, size_t width, size_t stride, float bound, float* to,
                               bool* beyond) {
    constexpr size_t kLanes = kWidth<V>;
    const int32_t most = std::bit_cast<int32_t>(bound);
    typename BitsOf<V>::Type found = {};
    for (size_t row = 0; row < rows; ++row, from += width * sizeof(float), to += stride) {
      if (width < kLanes) {
        std::memcpy(to, from, width * sizeof(float));
        *beyond = *beyond || FindBeyond(to, width, bound) < width;
        continue;
      }
      // Stored where they cross no cache line, but for the first and the last, which overlap with others.
      Copy<V>(from, most, to, found);
      const size_t beyond_line = reinterpret_cast<uintptr_t>(to) % sizeof(V) / sizeof(float);
      for (size_t i = kLanes - beyond_line; i + kLanes <= width; i += kLanes) {
        Copy<V>(from + i * sizeof(float), most, to + i, found);
      }
      if (width > kLanes) Copy<V>(from + (width - kLanes) * sizeof(float), most, to + width - kLanes, found);
    }
    for (size_t lane = 0; lane < kLanes; ++lane) *beyond = *beyond || found[lane] != 0;
  }
};

}  // namespace

size_t CopyRowsAndFindBeyond(const void* from, size_t rows, size_t width, size_t stride, float bound, float* to) {
  bool beyond = false;
  RunWidest<CopyRowsBody>(static_cast<const char*>(from), rows, width, stride, bound, to, &beyond);
  for (size_t row = 0; beyond && row < rows; ++row) {
    const size_t bad = FindBeyond(to + row * stride, width, bound);
    if (bad < width) return row * width + bad;
  }
  return rows * width;
}

}  // namespace skein
