// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/net/call_quota.h"
#include "coordinator/coordinator_state.h"
#include "spdlog/common.h"

namespace skein {

// Members that joined, left, fell silent or got another learner: a line of the log each, for people. Of many at once,
// and of those that come and go without end, only the beginning: 1,000 lines, and ten a second. Thread-safe.
class MembershipLog {
 public:
  void Log(const MembershipChange& change, MonotonicTime now);
  void Log(const Assignment::Move& move, MonotonicTime now);

 private:
  void Write(spdlog::level::level_enum level, const std::string& line, MonotonicTime now);

  CallQuota lines_{{.per_second = 10, .burst = 1000}};
  std::atomic<uint64_t> left_out_ = 0;
};

// An event of the history for tests (base/telemetry/history_recorder.h), if there is one.
void RecordChange(const MembershipChange& change);

}  // namespace skein
