// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

// What fault tests do at random: scripts/test_faults.py says so by a variable.
namespace skein {

// SKEIN_FAULT_SEED; 1 unless it is set.
inline uint64_t FaultSeed() {
  const char* const seed = std::getenv("SKEIN_FAULT_SEED");
  return seed == nullptr || *seed == '\0' ? 1 : std::strtoull(seed, nullptr, 10);
}

// Another sequence for each seed and row.
inline std::mt19937 FaultRandom(uint32_t row) {
  std::seed_seq both = {static_cast<uint32_t>(FaultSeed()), static_cast<uint32_t>(FaultSeed() >> 32), row};
  return std::mt19937(both);
}

// At random in [low, high].
inline uint64_t Choose(std::mt19937* random, uint64_t low, uint64_t high) {
  return low + (*random)() % (high - low + 1);
}

// Tells what came of the seed; scripts/test_faults.py shows such lines.
inline void SayChoice(const std::string& what) { std::cout << "seed " << FaultSeed() << ": " << what << std::endl; }

}  // namespace skein
