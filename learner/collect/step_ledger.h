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

// Counts every env step exactly once.   header of each fragment -> Arrive -> Trained | DropStale | DropAdmitted
// For every connection and in total: collected = trained + stale + rejected + lost + pending. collected: steps that
// the actor says it finished; pending: finished steps whose fate is not decided yet.
// Pure: no I/O, no clock. Not thread-safe. Stores at most kMostConnections connections, at most kMostClosed of them
// closed; the oldest closed ones are dropped. One that returns is treated like a connection of an earlier process.
class StepLedger {
 public:
  static constexpr size_t kMostConnections = 100'000;
  static constexpr size_t kMostClosed = 10'000;
  // Starts from the totals of an earlier process; steps pending then count as lost. `several`: actors move between this
  // ledger and those of other learners. Each ledger counts what arrived at it; steps that an actor finished while it
  // fed another learner belong to that learner's ledger.
  explicit StepLedger(const v1::StepAccount& before = {}, bool several = false);

  // The actor's stream opened. False: this connection's account is closed; the actor must join again.
  // REQUIRES: HasRoomFor(key).
  bool Open(const ConnectionId& key);
  bool HasRoomFor(const ConnectionId& key) const { return connections_.size() < kMostConnections || Knows(key); }
  bool Knows(const ConnectionId& key) const { return connections_.count(key) > 0; }
  size_t connections() const { return connections_.size(); }
  // Whether this connection's account is closed: its missing steps are counted as lost.
  bool closed(const ConnectionId& key) const;
  // Highest sequence that has arrived in this connection; 0 = none.
  uint64_t last_sequence(const ConnectionId& key) const;

  // A connection of this ledger was granted a ticket for `env_steps` steps. Steps that it claims beyond its grants are
  // not counted.
  void Grant(const ConnectionId& key, uint64_t env_steps);

  enum class Fate { kAdmitted, kStale, kRejected };
  // Fragment `sequence` of `env_steps` steps arrived and met `fate`; `collected` is the actor's own running total.
  // Returns how many steps of that total are not counted because the actor had no tickets for them.
  // If a connection's first sequence here is above 1, it began under an earlier process; the earlier steps belong to
  // that process's account. `unused`: steps of its grant that an admitted fragment did without.
  // REQUIRES: Open(key), !closed(key), sequence > last_sequence(key).
  uint64_t Arrive(const ConnectionId& key, uint64_t sequence, uint64_t env_steps, uint64_t collected, Fate fate,
                  uint64_t unused = 0);
  // Admitted steps are unusable: they count as rejected.
  void RejectAdmitted(uint64_t env_steps);
  // The actor said goodbye with this total: steps that have not arrived are lost. A connection that was never opened
  // here belongs to an earlier process's account and has no effect. With `several`, the total is used only if the
  // connection's last fragment came here; otherwise it includes other ledgers' steps. Returns the same as Arrive().
  uint64_t Depart(const ConnectionId& key, uint64_t collected);
  // The stream broke. CloseSilent closes the connection's account if it was not opened again within `grace`. A
  // connection without any fragment is dropped instead.
  void Disconnect(const ConnectionId& key, absl::Duration now);
  void CloseSilent(absl::Duration now, absl::Duration grace);

  // Admitted steps will not be trained on because their iteration ended without them. They count as stale.
  void DropStale(uint64_t env_steps);
  // Admitted steps were trained on.
  void Trained(uint64_t env_steps);
  // No admitted steps will be trained on any more (the run stops). They count as lost.
  void DropAdmitted();
  // All pending steps are lost (the run is over).
  void CloseAll();

  v1::StepAccount account() const;
  // Collected minus all other counts; any value but 0 is a bug.
  int64_t imbalance() const;

 private:
  struct Connection {
    uint64_t last_sequence = 0;
    uint64_t collected = 0;  // As the actor claims, limited by its grants.
    uint64_t arrived = 0;    // Admitted, stale or rejected.
    // Granted and not admitted. Invariant: arrived <= collected; a claim is counted up to arrived + unserved.
    uint64_t unserved = 0;
    bool connected = false;
    bool closed = false;
    bool came_here = false;          // The actor's newest known fragment came to this ledger.
    absl::Duration disconnected_at;  // On the caller's monotonic clock.
  };
  // Raises the connection's `collected` to `claimed`, as far as its grants allow; returns the steps beyond.
  uint64_t Claim(uint64_t claimed, Connection* connection);
  void Close(const ConnectionId& key, Connection* connection);
  void ForgetOldest();

  const bool several_;
  std::map<ConnectionId, Connection> connections_;
  std::deque<ConnectionId> closed_;  // In order of closing.
  uint64_t collected_ = 0, trained_ = 0, stale_ = 0, rejected_ = 0, lost_ = 0;
  uint64_t admitted_ = 0;    // Waiting to be trained on.
  uint64_t in_transit_ = 0;  // Sum over open connections of collected - arrived.
};

}  // namespace skein
