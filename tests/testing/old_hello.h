// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace skein {

// The first message of an actor of protocol 1.0, as that build sent it: a CollectRequest without a frame. Run "run",
// actor "ada", generation 1, 2 credits, 1 runner, CartPole-v1.
inline std::string OldHello() {
  constexpr char kBytes[] =
      "\x0a\x29\x08\x01\x1a\x03run\x22\x03"
      "ada\x28\x01\x30\x02\x38\x01\x42\x15\x0a\x0b"
      "CartPole-v1\x10\x04\x18\x02\x20\x01\x28\x01";
  return {kBytes, sizeof(kBytes) - 1};
}

}  // namespace skein
