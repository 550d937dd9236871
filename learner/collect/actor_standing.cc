// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/actor_standing.h"

#include <algorithm>

#include "learner/collect/ticket_timing.h"

namespace skein {

void ActorStanding::Serve() {
  most_ = std::min(most_ + 1, kAll);
  wait_ = absl::ZeroDuration();
  waits_until_ = -absl::InfiniteDuration();
}

void ActorStanding::LeaveUnserved(absl::Duration now) {
  most_ = 1;
  wait_ = std::clamp(2 * wait_, kFirstWait, kLongestWait);
  waits_until_ = now + wait_;
}

void AbsentStandings::Keep(const ConnectionId& actor, const ActorStanding& standing) {
  if (standing.good()) return;
  Take(actor);
  const Member member{actor.actor_id, actor.certificate};
  kept_[member] = {standing, next_};
  order_[next_++] = member;
  if (kept_.size() <= kMost) return;
  kept_.erase(order_.begin()->second);
  order_.erase(order_.begin());
}

ActorStanding AbsentStandings::Take(const ConnectionId& actor) {
  const auto kept = kept_.extract(Member{actor.actor_id, actor.certificate});
  if (kept.empty()) return {};
  order_.erase(kept.mapped().number);
  return kept.mapped().standing;
}

}  // namespace skein
