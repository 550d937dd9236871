// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/unconfirmed_connections.h"

#include <string>

namespace skein {
namespace {

constexpr uint64_t kMostConnectionsOfOneMember = 1 << 20;

// Members are to be back by then, see row 6 of docs/faults.md.
constexpr int kLeasesToJoinAgain = 2;

// Which actors are members, and under which generation they joined.
using Members = std::map<std::string, uint64_t>;

bool IsMember(const Members& members, const ConnectionId& connection) {
  const auto found = members.find(connection.actor_id);
  return found != members.end() && IsConnectionOf(connection, found->second);
}

}  // namespace

bool IsConnectionOf(const ConnectionId& connection, uint64_t generation) {
  return generation <= connection.generation && connection.generation - generation < kMostConnectionsOfOneMember;
}

std::optional<UnconfirmedConnections::Ended> UnconfirmedConnections::Greet(const ConnectionId& actor,
                                                                           const v1::Hello& hello, bool known,
                                                                           absl::Duration now) {
  const Ended before{{hello.previous_actor_id(), hello.previous_generation(), actor.certificate},
                     hello.previous_env_steps_collected()};
  const bool stays = before.connection.actor_id == actor.actor_id && before.connection.generation < actor.generation;
  if (!known) waiting_[actor] = {now, stays ? Ended() : before};
  return stays ? std::optional(before) : std::nullopt;
}

UnconfirmedConnections::Verdict UnconfirmedConnections::Judge(const v1::StatusResponse& status, absl::Duration asked,
                                                              absl::Duration lease) {
  if (absl::Seconds(status.uptime_seconds()) < kLeasesToJoinAgain * lease) return {};
  Members members;
  for (const v1::MemberStatus& member : status.members()) {
    if (member.role() == "actor") members[member.member_id()] = member.generation();
  }
  Verdict verdict;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const auto& [actor, waiting] = *it;
    if (waiting.since >= asked) {
      ++it;
      continue;
    }
    const ConnectionId& before = waiting.before.connection;
    if (!IsMember(members, actor)) {
      verdict.strangers.push_back(actor);
    } else if (before.generation > 0 && !IsMember(members, before)) {
      verdict.ended.push_back(waiting.before);
    }
    it = waiting_.erase(it);
  }
  return verdict;
}

}  // namespace skein
