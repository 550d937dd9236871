// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

// Loops over vectors of floats, written once and compiled for several instruction sets; the widest that the processor
// has is chosen when the program runs. Widths round differently (fused multiply-add, order of sums), so equal bits need
// the same kind of processor.
namespace skein {

enum class SimdLevel { kBase, kAvx2, kAvx512 };

// The widest instruction set of the processor. Tests may set a lower one, but not while another thread computes.
SimdLevel& ActiveSimdLevel();

// Vector types of GCC and Clang, available on every processor; arithmetic and comparisons are element-wise.
using Float4 = float __attribute__((vector_size(16)));
using Float8 = float __attribute__((vector_size(32)));
using Float16 = float __attribute__((vector_size(64)));

#define SKEIN_INLINE inline __attribute__((always_inline))

// Elements of a vector type.
template <typename V>
constexpr int64_t kWidth = sizeof(V) / sizeof(float);

// Vectors are passed by reference: by value they would need an ABI that the base instruction set does not have.
template <typename V>
SKEIN_INLINE void Load(const float* from, V& to) {
  std::memcpy(&to, from, sizeof(V));
}
template <typename V>
SKEIN_INLINE void Store(const V& from, float* to) {
  std::memcpy(to, &from, sizeof(V));
}

#if defined(__x86_64__)
template <typename Body, typename... Args>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))) void RunAvx512(Args... args) {
  Body::template Run<Float16>(args...);
}
template <typename Body, typename... Args>
__attribute__((target("avx2,fma"))) void RunAvx2(Args... args) {
  Body::template Run<Float8>(args...);
}
#endif

// Calls Body::Run<V>(args...) with the widest V. Run must be SKEIN_INLINE, and so must every function that it calls and
// that is to use the same width.
template <typename Body, typename... Args>
void RunWidest(Args... args) {
#if defined(__x86_64__)
  if (ActiveSimdLevel() == SimdLevel::kAvx512) return RunAvx512<Body>(args...);
  if (ActiveSimdLevel() == SimdLevel::kAvx2) return RunAvx2<Body>(args...);
#endif
  Body::template Run<Float4>(args...);
}

}  // namespace skein
