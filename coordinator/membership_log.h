// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/net/call_quota.h"
#include "coordinator/coordinator_state.h"
#include "spdlog/common.h"

namespace skein {

// Logs one line for each member that joins, leaves, expires or gets another learner. The rate is limited to ten lines a
// second after a burst of 1,000; further lines are left out. Thread-safe.
class MembershipLog {
 public:
  void Log(const MembershipChange& change, MonotonicTime now);
  void Log(const Assignment::Move& move, MonotonicTime now);

 private:
  void Write(spdlog::level::level_enum level, const std::string& line, MonotonicTime now);

  CallQuota lines_{{.per_second = 10, .burst = 1000}};
  std::atomic<uint64_t> left_out_ = 0;
};

// Records the change as a history event (base/telemetry/history_recorder.h) if recording is on.
void RecordChange(const MembershipChange& change);

}  // namespace skein
