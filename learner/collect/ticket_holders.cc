// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/ticket_holders.h"

#include <algorithm>

namespace skein {

bool TicketHolders::MayBeAnsweredBy(const ConnectionId& actor) const {
  const auto same_member = [&actor](const ConnectionId& holder) {
    return holder.actor_id == actor.actor_id && holder.certificate == actor.certificate;
  };
  return std::any_of(now_.begin(), now_.end(), same_member) || std::any_of(former_.begin(), former_.end(), same_member);
}

bool TicketHolders::Release(const ConnectionId& actor) {
  const auto held = std::find(now_.begin(), now_.end(), actor);
  if (held == now_.end()) return false;
  now_.erase(held);
  std::erase(former_, actor);
  former_.push_back(actor);
  if (former_.size() > kMostFormer) former_.erase(former_.begin());
  return true;
}

}  // namespace skein
