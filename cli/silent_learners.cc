// SPDX-License-Identifier: Apache-2.0
#include "cli/silent_learners.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/telemetry/proc_text.h"

namespace skein {

std::vector<SilentLearners::Hanging> SilentLearners::Look(const v1::StatusResponse& status,
                                                          const std::vector<pid_t>& running, absl::Duration now) {
  std::vector<Hanging> hanging;
  for (const pid_t pid : running) {
    const auto member =
        std::find_if(status.members().begin(), status.members().end(), [&](const v1::MemberStatus& one) {
          return one.role() == "learner" && one.pid() == pid && one.host() == options_.host;
        });
    const bool is_member = member != status.members().end();
    if (!is_member && seen_.count(pid) == 0) continue;
    const uint64_t processor_time = processor_time_(pid);
    Seen& seen = seen_.try_emplace(pid, Seen{now, now, processor_time}).first->second;
    if (std::exchange(seen.processor_time, processor_time) != processor_time) seen.moved = now;
    if (is_member) {
      seen.heard = now - absl::Seconds(member->seconds_since_heartbeat());
    } else if (now - seen.heard >= options_.lease + 2 * options_.heartbeat && now - seen.moved >= options_.lease) {
      hanging.push_back({pid, now - seen.heard});
    }
  }
  for (auto it = seen_.begin(); it != seen_.end();) {
    const bool runs = std::find(running.begin(), running.end(), it->first) != running.end();
    it = runs ? std::next(it) : seen_.erase(it);
  }
  return hanging;
}

uint64_t ProcessorTicks(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  return ParseRunTicks({std::istreambuf_iterator<char>(file), {}});
}

}  // namespace skein
