// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

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

// Why external environments of this process could not begin: the first reason. Thread-safe.
class FirstReason {
 public:
  // Keeps `why` if there is none yet.
  void Note(const std::string& why) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (why_.empty()) why_ = why;
  }
  // Empty: there is none.
  std::string why() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return why_;
  }

 private:
  mutable absl::Mutex mu_;
  std::string why_ ABSL_GUARDED_BY(mu_);
};
inline FirstReason& FirstReasonOfExternalEnvs() {
  static FirstReason reason;
  return reason;
}

}  // namespace skein
