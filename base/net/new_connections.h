// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/net/accepted_connection.h"

namespace skein {

// Limits how many connections of one address are new to the server at once: of a new one a ConnectionGuard cannot tell
// yet whether it floods. So a flood costs what `at_once` connections take until they are found out, however many there
// are.
//   Enter -> the server -> Settle -> the next
// An address is one of ConnectionName's; SiteOf() is what counts of it.
// Not thread-safe. The destructor closes connections that still wait.
class NewConnections {
 public:
  explicit NewConnections(size_t at_once = 4) : at_once_(at_once) {}
  ~NewConnections();
  NewConnections(const NewConnections&) = delete;
  NewConnections& operator=(const NewConnections&) = delete;

  // True: it is one of the new ones now, and the caller keeps it. False: it waits here, which owns it from now on.
  bool Enter(const AcceptedConnection& connection, const std::string& address);
  // One of the address's new connections has proved itself or has ended. Returns the one that has waited longest, which
  // is new now; the caller owns it.
  std::optional<AcceptedConnection> Settle(const std::string& address);
  // Takes all of the address that wait, oldest first. The caller owns them.
  std::deque<AcceptedConnection> TakeWaiting(const std::string& address);

 private:
  struct Site {
    size_t entered = 0;
    std::deque<AcceptedConnection> waiting;  // Oldest first.
  };

  const size_t at_once_;
  std::map<std::string, Site> sites_;  // Those with new connections.
};

}  // namespace skein
