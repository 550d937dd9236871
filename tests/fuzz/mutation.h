// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace skein::fuzz {

// `input` after a few of what hostile or broken senders do: bits flipped, extreme bytes, cut off, bytes lost, repeated
// or inserted. The same for the same state of `random`.
inline std::string Mutate(std::string input, std::mt19937* random) {
  const auto below = [random](size_t limit) { return static_cast<size_t>((*random)()) % limit; };
  constexpr unsigned char kExtremes[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  for (size_t change = 0, changes = 1 + below(4); change < changes && !input.empty(); ++change) {
    const size_t at = below(input.size()), length = 1 + below(8);
    switch (below(7)) {
      case 0:
        input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 1:
        input[at] = static_cast<char>(kExtremes[below(sizeof(kExtremes))]);
        break;
      case 2:
        for (size_t i = at; i < input.size() && i < at + length; ++i) input[i] = static_cast<char>(0xff);
        break;
      case 3:
        input.resize(at);
        break;
      case 4:
        input.erase(at, length);
        break;
      case 5:
        input.insert(at, input, below(input.size()), length);
        break;
      default:
        input.insert(at, length, static_cast<char>((*random)()));
        break;
    }
  }
  return input;
}

}  // namespace skein::fuzz
