// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "learner/collect/connection_id.h"

namespace skein {

// The connections that one open ticket was granted to, and those that may still answer it.
// Pure. Not thread-safe.
class TicketHolders {
 public:
  // As many former holders are remembered, the newest.
  static constexpr size_t kMostFormer = 64;

  // Empty: the ticket waits to be granted.
  const std::vector<ConnectionId>& now() const { return now_; }
  // It was taken from a connection: the time since its grant says nothing about the next holder's speed.
  bool taken_back() const { return taken_back_; }
  // Granted to `actor`, or to another connection of the same member, now or before.
  bool MayBeAnsweredBy(const ConnectionId& actor) const;

  void Add(const ConnectionId& actor) { now_.push_back(actor); }
  // `actor` no longer works on it, as it answered or was refused. False: it did not hold it.
  bool Release(const ConnectionId& actor);
  // As Release; the ticket was taken from it.
  void TakeBack(const ConnectionId& actor) { taken_back_ = Release(actor) || taken_back_; }

 private:
  std::vector<ConnectionId> now_;
  std::vector<ConnectionId> former_;
  bool taken_back_ = false;
};

}  // namespace skein
