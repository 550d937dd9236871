// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "learner/collect/connection_id.h"

namespace skein {

// The connections that hold one open ticket, and former holders, which may still answer it.
// Pure. Not thread-safe.
class TicketHolders {
 public:
  // Only the newest former holders are stored, at most so many.
  static constexpr size_t kMostFormer = 64;

  // Empty: the ticket waits to be granted.
  const std::vector<ConnectionId>& now() const { return now_; }
  // Whether it was taken back from a connection: its answer time is then no measure of the next holder's speed.
  bool taken_back() const { return taken_back_; }
  // Whether it is or was granted to `actor` or another connection of the same member.
  bool MayBeAnsweredBy(const ConnectionId& actor) const;

  void Add(const ConnectionId& actor) { now_.push_back(actor); }
  // `actor` no longer works on it because it answered or its answer was refused. False: `actor` did not hold it.
  bool Release(const ConnectionId& actor);
  // As Release, but the ticket was taken back from `actor`.
  void TakeBack(const ConnectionId& actor) { taken_back_ = Release(actor) || taken_back_; }

 private:
  std::vector<ConnectionId> now_;
  std::vector<ConnectionId> former_;
  bool taken_back_ = false;
};

}  // namespace skein
