// SPDX-License-Identifier: Apache-2.0
#include "base/net/new_connections.h"

#include <unistd.h>

#include <utility>

#include "base/net/stream_counts.h"

namespace skein {

NewConnections::~NewConnections() {
  for (const auto& [name, site] : sites_) {
    for (const AcceptedConnection& one : site.waiting) close(one.socket);
  }
}

bool NewConnections::Enter(const AcceptedConnection& connection, const std::string& address) {
  Site& site = sites_[SiteOf(address)];
  if (site.entered < at_once_) {
    ++site.entered;
    return true;
  }
  site.waiting.push_back(connection);
  return false;
}

std::optional<AcceptedConnection> NewConnections::Settle(const std::string& address) {
  const auto found = sites_.find(SiteOf(address));
  if (found == sites_.end()) return std::nullopt;
  Site& site = found->second;
  if (site.waiting.empty()) {
    if (--site.entered == 0) sites_.erase(found);
    return std::nullopt;
  }
  const AcceptedConnection next = site.waiting.front();
  site.waiting.pop_front();
  return next;
}

std::deque<AcceptedConnection> NewConnections::TakeWaiting(const std::string& address) {
  const auto found = sites_.find(SiteOf(address));
  return found == sites_.end() ? std::deque<AcceptedConnection>() : std::exchange(found->second.waiting, {});
}

}  // namespace skein
