// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership_log.h"

#include "absl/strings/str_cat.h"
#include "base/telemetry/history_recorder.h"
#include "base/telemetry/printable.h"
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

void MembershipLog::Log(const MembershipChange& change, MonotonicTime now) {
  const Member& member = change.member;
  switch (change.kind) {
    case MembershipChange::kJoined:
      Write(spdlog::level::info,
            absl::StrCat(member.id, " joined from ", Excerpt(member.host), ", pid ", member.pid, ", generation ",
                         member.generation),
            now);
      return;
    case MembershipChange::kLeft:
      Write(spdlog::level::info, absl::StrCat(member.id, " left"), now);
      return;
    case MembershipChange::kExpired:
      Write(spdlog::level::warn,
            absl::StrCat(member.id, " on ", Excerpt(member.host), ", pid ", member.pid,
                         ", fell silent: its lease has ended"),
            now);
      return;
  }
}

void MembershipLog::Log(const Assignment::Move& move, MonotonicTime now) {
  Write(spdlog::level::info,
        absl::StrCat(move.actor, " goes from ", LearnerId(move.from), " to ", LearnerId(move.to),
                     move.starvation ? ", which starves" : ""),
        now);
}

void MembershipLog::Write(spdlog::level::level_enum level, const std::string& line, MonotonicTime now) {
  if (!lines_.Take("", now).ok()) {
    ++left_out_;
    return;
  }
  const uint64_t left_out = left_out_.exchange(0);
  spdlog::log(level, "{}{}", line, left_out == 0 ? "" : absl::StrCat(" (", left_out, " such lines before left out)"));
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
