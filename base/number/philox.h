// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

// Counter-based random numbers: Philox4x32-10, Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
namespace skein {

inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53, kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr uint32_t kPhiloxKeyStep0 = 0x9E3779B9, kPhiloxKeyStep1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;

// The ten-round bijection of one 128-bit counter under a 64-bit key.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Purpose of a stream of random numbers; streams of different purposes never overlap.
enum class RandomPurpose : uint32_t {
  kEnvReset = 1,     // (env index, episode)
  kEnvStep = 2,      // (env index, episode), for environments that are random within an episode
  kAction = 3,       // (env index, episode), then the step as position
  kEvaluation = 4,   // replaces the run seed's env streams in evaluations
  kPermutation = 5,  // (iteration, epoch) of the learner's minibatches
  kInit = 6,         // (parameter index, 0) of the initial weights
  kDirection = 7,    // (iteration, direction) of a search; one normal number for each parameter
};

// The stream (seed, purpose, a, b): a pure function from position to numbers, in 64 bytes of state.
// The key is the seed, the counter is {position, b, a, purpose}. a must be under 2^32, b under 2^32.
// `position` is the index of the first block of four 32-bit words: code that draws n words a step begins step t at
// position t * ceil(n / 4), so that no two steps share a block. Words drawn: NextUint32 1, Uniform 2, each pair of
// Normals 4, Below 1 (rarely more). Not thread-safe; copies are independent.
class RandomStream {
 public:
  RandomStream(uint64_t seed, RandomPurpose purpose, uint64_t a, uint64_t b, uint32_t position = 0);

  uint32_t NextUint32();
  double Uniform();                         // In [0, 1), 53 bits.
  double Uniform(double low, double high);  // low + (high - low) * Uniform().
  double Normal();                          // Standard normal, Box-Muller of two uniforms, both used.
  // Unbiased, in [0, bound). REQUIRES: bound > 0.
  uint32_t Below(uint32_t bound);

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_;
  int used_ = 4;
  bool has_spare_normal_ = false;
  double spare_normal_ = 0;
};

}  // namespace skein
