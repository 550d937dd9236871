// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace skein::fuzz {

// One file of a corpus. Its name begins with "good_" if the target accepts it, else with "bad_".
struct Seed {
  std::string target, name, bytes;
};

// Made from messages as our programs make them, and from what can be wrong with them. Always the same.
std::vector<Seed> WireSeeds();
std::vector<Seed> ConfigSeeds();
std::vector<Seed> FileSeeds();
std::vector<Seed> StateLogSeeds();
std::vector<Seed> WorldSeeds();

}  // namespace skein::fuzz
