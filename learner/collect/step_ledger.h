// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "absl/time/time.h"
#include "learner/collect/connection_id.h"
#include "skein/v1/status.pb.h"

namespace skein {

// Exactly-once accounting of env steps.   header of each batch -> Arrive -> Trained | Drop
// For every connection and in total: collected = trained + stale + rejected + lost + pending, where collected is
// what the actor says it finished and pending what it finished and nobody has decided on yet.
// Pure: no I/O, no clock. Not thread-safe. Remembers kMostConnections at most, of which kMostClosed are closed: of
// those the oldest are forgotten, and one of them that comes back begins anew, as one of an earlier process does.
class StepLedger {
 public:
  static constexpr size_t kMostConnections = 100'000;
  static constexpr size_t kMostClosed = 10'000;
  // Starts from the totals of an earlier process; what was pending then counts as lost. `several`: actors move between
  // this ledger and those of other learners; each counts what came to it, and what an actor finished while it was away
  // from here belongs to the others.
  explicit StepLedger(const v1::StepAccount& before = {}, bool several = false);

  // The actor's stream opened. False: this connection was closed (its steps are counted as lost); it must join again.
  // REQUIRES: HasRoomFor(key).
  bool Open(const ConnectionId& key);
  bool HasRoomFor(const ConnectionId& key) const { return connections_.size() < kMostConnections || Knows(key); }
  bool Knows(const ConnectionId& key) const { return connections_.count(key) > 0; }
  size_t connections() const { return connections_.size(); }
  // Whether this connection's books are closed: what is still missing of it is counted as lost.
  bool closed(const ConnectionId& key) const;
  // Highest sequence that has arrived in this connection; 0 = none.
  uint64_t last_sequence(const ConnectionId& key) const;

  // A connection of this ledger was granted a ticket for so many steps. It cannot have finished more than it was
  // granted: what it claims beyond that is not counted.
  void Grant(const ConnectionId& key, uint64_t env_steps);

  enum class Fate { kAdmitted, kStale, kRejected };
  // Batch `sequence` of `env_steps` steps arrived and met `fate`; `collected` is the actor's own running total. Returns
  // how many steps of that are not counted, as the actor had no tickets for them.
  // A connection that begins here with a later sequence than 1 began under an earlier process, whose account has the
  // rest. REQUIRES: Open(key), !closed(key), sequence > last_sequence(key).
  uint64_t Arrive(const ConnectionId& key, uint64_t sequence, uint64_t env_steps, uint64_t collected, Fate fate);
  // Steps that were admitted turned out to be unusable: they count as rejected.
  void RejectAdmitted(uint64_t env_steps);
  // The actor said goodbye with this total: what has not arrived never will. A connection that was never opened here
  // belongs to the account of an earlier process and changes nothing. Among several ledgers the total says something
  // only if the connection's last batch came here: otherwise it counts what others have. Returns what Arrive() does.
  uint64_t Depart(const ConnectionId& key, uint64_t collected);
  // The stream broke; the connection closes unless it is opened again before CloseSilent finds it silent for `grace`.
  // One that nothing has come from is forgotten then.
  void Disconnect(const ConnectionId& key, absl::Duration now);
  void CloseSilent(absl::Duration now, absl::Duration grace);

  // Steps that were admitted will not be trained on: their iteration ended without them.
  void DropStale(uint64_t env_steps);
  // Admitted steps were trained on.
  void Trained(uint64_t env_steps);
  // Admitted steps that will not be trained on (the run stops). They count as lost.
  void DropAdmitted();
  // Everything still pending is lost (the run is over).
  void CloseAll();

  v1::StepAccount account() const;
  // Collected less everything else, over closed books; any value but 0 is a bug.
  int64_t imbalance() const;

 private:
  struct Connection {
    uint64_t last_sequence = 0;
    uint64_t collected = 0;  // As the actor says.
    uint64_t arrived = 0;    // Admitted, stale or rejected.
    uint64_t unserved = 0;   // Granted and not admitted. Invariant: arrived <= collected <= arrived + unserved.
    bool connected = false;
    bool closed = false;
    bool came_here = false;          // The newest batch it made, as far as can be known.
    absl::Duration disconnected_at;  // On the caller's monotonic clock.
  };
  // Raises what the connection has collected to `claimed`, as far as that is possible; returns the rest.
  uint64_t Claim(uint64_t claimed, Connection* connection);
  void Close(const ConnectionId& key, Connection* connection);
  void ForgetOldest();

  const bool several_;
  std::map<ConnectionId, Connection> connections_;
  std::deque<ConnectionId> closed_;  // In the order of their ends.
  uint64_t collected_ = 0, trained_ = 0, stale_ = 0, rejected_ = 0, lost_ = 0;
  uint64_t admitted_ = 0;    // Waiting to be trained on.
  uint64_t in_transit_ = 0;  // Sum over open connections of collected - arrived.
};

}  // namespace skein
