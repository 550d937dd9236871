// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/net/accepted_connection.h"

namespace skein {

// Delays new connections from addresses whose connections a ConnectionGuard has ended: such an address gets one
// connection every `spacing`, for as long as `penalty` since its last offence. Others are not delayed.
//   Penalize -> Hold (at accept) -> TakeDue
// An address is one of ConnectionName's; SiteOf() is what counts of it.
// Not thread-safe. The destructor closes connections that are still held.
class HeldConnections {
 public:
  struct Options {
    absl::Duration penalty = absl::Seconds(10);
    absl::Duration spacing = absl::Milliseconds(100);
    absl::Duration longest = absl::Seconds(10);  // A connection that would be held longer is closed.
    size_t addresses = 1024;                     // Beyond it the oldest penalty is forgotten.
  };

  HeldConnections();
  explicit HeldConnections(const Options& options) : options_(options) {}
  ~HeldConnections();
  HeldConnections(const HeldConnections&) = delete;
  HeldConnections& operator=(const HeldConnections&) = delete;

  void Penalize(const std::string& address, absl::Duration now);
  // Takes ownership of `connection` if `address` is penalized. False: it is not, the caller keeps the connection.
  bool Hold(const AcceptedConnection& connection, const std::string& address, absl::Duration now);
  // The connections whose turn has come. The caller owns them.
  std::vector<AcceptedConnection> TakeDue(absl::Duration now);
  // How long poll() may wait; -1: no limit.
  int TimeoutMillis(absl::Duration now) const;

 private:
  struct Turn {
    absl::Duration penalized_until;
    absl::Duration next;  // The earliest time of the next connection.
  };

  const Options options_;
  std::map<std::string, Turn> turns_;
  std::multimap<absl::Duration, AcceptedConnection> held_;  // By due time.
};

}  // namespace skein
