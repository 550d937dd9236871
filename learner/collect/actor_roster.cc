// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/actor_roster.h"

namespace skein {

ActorRecord* ActorRoster::Find(const ConnectionId& actor) {
  const auto it = records_.find(actor);
  return it == records_.end() ? nullptr : &it->second;
}

const ActorRecord* ActorRoster::Find(const ConnectionId& actor) const {
  const auto it = records_.find(actor);
  return it == records_.end() ? nullptr : &it->second;
}

void ActorRoster::Add(const ConnectionId& actor, uint32_t credits, uint32_t runners) {
  records_.emplace(actor, ActorRecord(credits, runners, absent_.Take(actor), ++turn_));
}

void ActorRoster::Remove(const ConnectionId& actor) {
  const auto it = records_.find(actor);
  if (it == records_.end()) return;
  absent_.Keep(actor, it->second.standing());
  records_.erase(it);
}

void ActorRoster::Grant(const ConnectionId& actor, uint64_t ticket_id, absl::Duration now) {
  Find(actor)->Grant(ticket_id, now, ++turn_);
}

absl::Duration ActorRoster::Fastest() const {
  absl::Duration fastest = absl::ZeroDuration();
  for (const auto& [key, actor] : records_) {
    if (actor.service() == absl::ZeroDuration()) continue;
    if (fastest == absl::ZeroDuration() || actor.service() < fastest) fastest = actor.service();
  }
  return fastest;
}

uint64_t ActorRoster::Runners(absl::Duration now) const {
  uint64_t runners = 0;
  for (const auto& [key, actor] : records_) runners += actor.Runners(now);
  return runners;
}

double ActorRoster::OthersPerSecond(const ActorRecord& actor, absl::Duration fastest, absl::Duration now) const {
  double per_second = 0;
  for (const auto& [key, other] : records_) {
    if (&other != &actor) per_second += other.Runners(now) / absl::ToDoubleSeconds(other.Usual(fastest));
  }
  return per_second;
}

}  // namespace skein
