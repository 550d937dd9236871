// SPDX-License-Identifier: Apache-2.0
#include "actor/normal_noise.h"

#include <bit>
#include <cstring>

#include "policy/simd.h"

namespace skein {
namespace {

constexpr size_t kMostLanes = sizeof(Float16) / sizeof(double);

constexpr uint64_t kWord = 0xFFFFFFFF;

// A double of this exponent has whole numbers under 2^52 in its lowest bits; with half as much more, signed ones too.
constexpr double kWhole = 0x1p52, kSigned = 0x1.8p52;

// As many 64-bit numbers as are as large as V.
template <typename V>
struct Wide;
template <>
struct Wide<Float4> {
  using Real = double __attribute__((vector_size(16)));
  using Bits = uint64_t __attribute__((vector_size(16)));
};
template <>
struct Wide<Float8> {
  using Real = double __attribute__((vector_size(32)));
  using Bits = uint64_t __attribute__((vector_size(32)));
};
template <>
struct Wide<Float16> {
  using Real = double __attribute__((vector_size(64)));
  using Bits = uint64_t __attribute__((vector_size(64)));
};

template <typename V>
struct Lanes {
  using Real = typename Wide<V>::Real;
  using Bits = typename Wide<V>::Bits;
  using Signed = decltype(Real{} < Real{});
  static constexpr size_t kCount = sizeof(V) / sizeof(double);

  static SKEIN_INLINE void Philox(uint64_t seed, Bits& word0, Bits& word1, Bits& word2, Bits& word3) {
    auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      const Bits product0 = word0 * uint64_t{kPhiloxMultiplier0}, product1 = word2 * uint64_t{kPhiloxMultiplier1};
      word0 = (product1 >> 32) ^ word1 ^ uint64_t { key0 };
      word1 = product1 & kWord;
      word2 = (product0 >> 32) ^ word3 ^ uint64_t { key1 };
      word3 = product0 & kWord;
      key0 += kPhiloxKeyStep0;
      key1 += kPhiloxKeyStep1;
    }
  }

  // In [0, 1), the upper 53 bits of the two words, as RandomStream::Uniform.
  static SKEIN_INLINE void Uniform(const Bits& high, const Bits& low, Real& uniform) {
    constexpr uint64_t kExponent = std::bit_cast<uint64_t>(kWhole);
    uniform = (reinterpret_cast<Real>(high | kExponent) - kWhole) * 0x1p-32 +
              (reinterpret_cast<Real>(low >> 11 | kExponent) - kWhole) * 0x1p-53;
  }

  // x = ln(x) for normal x > 0: x = 2^k m with m around 1, s = (m - 1) / (m + 1), ln m = 2 atanh s, of which the
  // polynomial in s^2 is what FreeBSD's msun e_log.c has (error under 1 unit in the last place).
  static SKEIN_INLINE void Log(Real& x) {
    constexpr uint64_t kSqrtHalf = 0x3fe6a09e00000000, kExponentBits = 0xfff0000000000000;
    constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
    const Bits above = reinterpret_cast<Bits>(x) - kSqrtHalf;
    const Bits exponent = reinterpret_cast<Bits>(reinterpret_cast<Signed>(above) >> 52);
    const Real k = reinterpret_cast<Real>(exponent + std::bit_cast<uint64_t>(kSigned)) - kSigned;
    const Real f = reinterpret_cast<Real>(reinterpret_cast<Bits>(x) - (above & kExponentBits)) - 1.0;
    const Real s = f / (f + 2.0), z = s * s, w = z * z;
    const Real even = w * (w * (w * 1.531383769920937332e-01 + 2.222219843214978396e-01) + 3.999999999940941908e-01);
    const Real odd =
        z * (w * (w * (w * 1.479819860511658591e-01 + 1.818357216161805012e-01) + 2.857142874366239149e-01) +
             6.666666666666735130e-01);
    const Real half_square = f * f * 0.5;
    x = k * kLn2High - ((half_square - (s * (half_square + (even + odd)) + k * kLn2Low)) - f);
  }

  // Of 2 pi turns, turns in [0, 1): by the nearest quarter and what is beyond it, at most an eighth either way, for
  // which msun's k_sin.c and k_cos.c have the polynomials.
  static SKEIN_INLINE void SinCos(const Real& turns, Real& sine, Real& cosine) {
    constexpr double kHalfPi = 1.57079632679489661923;
    const Real quarters = turns * 4.0, shifted = quarters + kSigned;
    const Bits quarter = reinterpret_cast<Bits>(shifted) & uint64_t{3};
    const Real x = (quarters - (shifted - kSigned)) * kHalfPi, z = x * x;
    Real s = z * 1.58969099521155010221e-10 - 2.50507602534068634195e-08;
    s = s * z + 2.75573137070700676789e-06;
    s = s * z - 1.98412698298579493134e-04;
    s = s * z + 8.33333333332248946124e-03;
    s = s * z - 1.66666666666666324348e-01;
    s = x + x * z * s;
    Real c = z * -1.13596475577881948265e-11 + 2.08757232129817482790e-09;
    c = c * z - 2.75573143513906633035e-07;
    c = c * z + 2.48015872894767294178e-05;
    c = c * z - 1.38888888888741095749e-03;
    c = c * z + 4.16666666666666019037e-02;
    const Real half_square = z * 0.5, rest = 1.0 - half_square;
    c = rest + (((1.0 - rest) - half_square) + z * z * c);
    const Signed swap = reinterpret_cast<Signed>(quarter & uint64_t{1}) != 0;
    sine = reinterpret_cast<Real>(reinterpret_cast<Bits>(swap ? c : s) ^ (quarter & uint64_t{2}) << 62);
    cosine =
        reinterpret_cast<Real>(reinterpret_cast<Bits>(swap ? s : c) ^ ((quarter + uint64_t{1}) & uint64_t{2}) << 62);
  }

  static SKEIN_INLINE void Sqrt(Real& x) {
    for (size_t lane = 0; lane < kCount; ++lane) x[lane] = __builtin_sqrt(x[lane]);
  }
};

struct Blocks {
  uint64_t seed, purpose;
  const uint64_t *a, *b, *position;
  size_t size;
  double *first, *second;
};

struct DrawBody {
  template <typename V>
  static SKEIN_INLINE void Run(const Blocks* blocks) {
    using L = Lanes<V>;
    for (size_t i = 0; i < blocks->size; i += L::kCount) {
      typename L::Bits word0, word1, word2, word3 = typename L::Bits{} + blocks->purpose;
      std::memcpy(&word0, blocks->position + i, sizeof(word0));
      std::memcpy(&word1, blocks->b + i, sizeof(word1));
      std::memcpy(&word2, blocks->a + i, sizeof(word2));
      L::Philox(blocks->seed, word0, word1, word2, word3);
      typename L::Real radius, turns, sine, cosine;
      L::Uniform(word0, word1, radius);
      radius = 1.0 - radius;  // Never 0.
      L::Log(radius);
      radius *= -2.0;
      L::Sqrt(radius);
      L::Uniform(word2, word3, turns);
      L::SinCos(turns, sine, cosine);
      cosine *= radius;
      sine *= radius;
      std::memcpy(blocks->first + i, &cosine, sizeof(cosine));
      std::memcpy(blocks->second + i, &sine, sizeof(sine));
    }
  }
};

}  // namespace

void NormalNoise::Begin(uint64_t seed, RandomPurpose purpose, int pairs) {
  seed_ = seed;
  purpose_ = purpose;
  pairs_ = pairs;
  size_ = 0;
}

void NormalNoise::AddStream(uint32_t a, uint32_t b, uint32_t position) {
  const size_t end = size_ + static_cast<size_t>(pairs_);
  if (const size_t room = (end + kMostLanes - 1) / kMostLanes * kMostLanes; a_.size() < room) {
    for (auto* words : {&a_, &b_, &position_}) words->resize(room);
    for (auto* normals : {&first_, &second_}) normals->resize(room);
  }
  for (; size_ < end; ++size_, ++position) {
    a_[size_] = a;
    b_[size_] = b;
    position_[size_] = position;
  }
}

void NormalNoise::Draw() {
  const Blocks blocks = {
      seed_,         static_cast<uint64_t>(purpose_), a_.data(), b_.data(), position_.data(), size_, first_.data(),
      second_.data()};
  RunWidest<DrawBody>(&blocks);
}

}  // namespace skein
