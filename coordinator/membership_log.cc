// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership_log.h"

#include <string>

#include "base/history_recorder.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

const char* EventName(MembershipChange::Kind kind) {
  switch (kind) {
    case MembershipChange::kJoined:
      return "join";
    case MembershipChange::kLeft:
      return "leave";
    case MembershipChange::kExpired:
      return "expire";
  }
  return "";
}

}  // namespace

void LogChange(const MembershipChange& change) {
  const Member& member = change.member;
  switch (change.kind) {
    case MembershipChange::kJoined:
      spdlog::info("{} joined from {}, pid {}, generation {}", member.id, member.host, member.pid, member.generation);
      return;
    case MembershipChange::kLeft:
      spdlog::info("{} left", member.id);
      return;
    case MembershipChange::kExpired:
      spdlog::warn("{} on {}, pid {}, fell silent: its lease has ended", member.id, member.host, member.pid);
      return;
  }
}

void RecordChange(const MembershipChange& change) {
  if (!HistoryIsOn()) return;
  const Member& member = change.member;
  RecordHistory(EventName(change.kind), {{"member", member.id},
                                         {"generation", member.generation},
                                         {"role", std::string(RoleName(member.role))},
                                         {"rank", uint64_t{member.rank}},
                                         {"member_pid", static_cast<uint64_t>(member.pid)}});
}

}  // namespace skein
