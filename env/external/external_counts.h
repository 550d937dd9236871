// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace skein {

// Counts of failures of this process's external environments, since the process began. Thread-safe.
struct ExternalCounts {
  std::atomic<uint64_t> lost_episodes{0};  // Truncated because their environment or its server failed.
  std::atomic<uint64_t> restarted_servers{0};
};
inline ExternalCounts& CountsOfExternalEnvs() {
  static ExternalCounts counts;
  return counts;
}

}  // namespace skein
