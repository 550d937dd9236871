// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace skein {

// Upper limits of one process's use of its machine. A limit that is not set does not apply.
struct ResourceShare {
  std::optional<double> cpus;  // 0.5 = half of the time of one CPU.
  std::optional<double> gpus;  // Below 1 a share of one GPU; 0 = it sees none.
  std::optional<uint64_t> memory_bytes;
  std::string setting;  // For messages: the section of the configuration that has it, e.g. "resources.actor".

  bool empty() const { return !cpus && !gpus && !memory_bytes; }
};

}  // namespace skein
