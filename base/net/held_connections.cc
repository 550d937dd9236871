// SPDX-License-Identifier: Apache-2.0
#include "base/net/held_connections.h"

#include <unistd.h>

#include <algorithm>

#include "base/net/stream_counts.h"

namespace skein {
HeldConnections::HeldConnections() : HeldConnections(Options()) {}

HeldConnections::~HeldConnections() {
  for (const auto& [due, connection] : held_) close(connection.socket);
}

void HeldConnections::Penalize(const std::string& address, absl::Duration now) {
  const std::string site = SiteOf(address);
  if (turns_.count(site) == 0 && turns_.size() >= options_.addresses) {
    turns_.erase(std::min_element(turns_.begin(), turns_.end(), [](const auto& one, const auto& other) {
      return one.second.penalized_until < other.second.penalized_until;
    }));
  }
  Turn& turn = turns_[site];
  turn.penalized_until = now + options_.penalty;
  turn.next = std::max(turn.next, now + options_.spacing);
}

bool HeldConnections::Hold(const AcceptedConnection& connection, const std::string& address, absl::Duration now) {
  const auto found = turns_.find(SiteOf(address));
  if (found == turns_.end()) return false;
  Turn& turn = found->second;
  if (turn.penalized_until < now) {
    turns_.erase(found);
    return false;
  }
  const absl::Duration due = std::max(turn.next, now);
  if (due - now > options_.longest) {
    close(connection.socket);
    return true;
  }
  turn.next = due + options_.spacing;
  held_.emplace(due, connection);
  return true;
}

std::vector<AcceptedConnection> HeldConnections::TakeDue(absl::Duration now) {
  std::vector<AcceptedConnection> due;
  while (!held_.empty() && held_.begin()->first <= now) {
    due.push_back(held_.begin()->second);
    held_.erase(held_.begin());
  }
  return due;
}

int HeldConnections::TimeoutMillis(absl::Duration now) const {
  if (held_.empty()) return -1;
  const absl::Duration left = std::max(held_.begin()->first - now, absl::ZeroDuration());
  return static_cast<int>(absl::ToInt64Milliseconds(left)) + 1;
}

}  // namespace skein
