// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/step_ledger.h"

#include <algorithm>

namespace skein {

StepLedger::StepLedger(const v1::StepAccount& before, bool several)
    : several_(several),
      collected_(before.collected()),
      trained_(before.trained()),
      stale_(before.stale()),
      rejected_(before.rejected()),
      lost_(before.lost() + before.pending()) {}

bool StepLedger::Open(const ConnectionId& key) {
  Connection& connection = connections_[key];
  if (connection.closed) return false;
  connection.connected = true;
  connection.came_here = false;
  return true;
}

bool StepLedger::closed(const ConnectionId& key) const {
  auto it = connections_.find(key);
  return it != connections_.end() && it->second.closed;
}

uint64_t StepLedger::last_sequence(const ConnectionId& key) const {
  auto it = connections_.find(key);
  return it == connections_.end() ? 0 : it->second.last_sequence;
}

void StepLedger::Grant(const ConnectionId& key, uint64_t env_steps) {
  const auto it = connections_.find(key);
  if (it != connections_.end()) it->second.unserved += env_steps;
}

uint64_t StepLedger::Claim(uint64_t claimed, Connection* connection) {
  const uint64_t counted =
      std::max(std::min(claimed, connection->arrived + connection->unserved), connection->collected);
  in_transit_ += counted - connection->collected;
  collected_ += counted - connection->collected;
  connection->collected = counted;
  return claimed - std::min(claimed, counted);
}

uint64_t StepLedger::Arrive(const ConnectionId& key, uint64_t sequence, uint64_t env_steps, uint64_t collected,
                            Fate fate, uint64_t unused) {
  Connection& connection = connections_[key];
  if (sequence > connection.last_sequence + 1 && (several_ || connection.last_sequence == 0)) {
    const uint64_t counted = connection.collected + env_steps;
    const uint64_t elsewhere = collected - std::min(collected, counted);
    connection.collected += elsewhere;
    connection.arrived += elsewhere;
  }
  connection.last_sequence = sequence;
  connection.came_here = true;
  if (fate == Fate::kAdmitted) connection.unserved -= std::min(connection.unserved, env_steps + unused);
  connection.arrived += env_steps;
  // An actor has finished at least the steps that arrived from it: a lower claim is raised.
  const uint64_t rest = Claim(std::max(collected, connection.arrived), &connection);
  in_transit_ -= env_steps;
  switch (fate) {
    case Fate::kAdmitted:
      admitted_ += env_steps;
      break;
    case Fate::kStale:
      stale_ += env_steps;
      break;
    case Fate::kRejected:
      rejected_ += env_steps;
      break;
  }
  return rest;
}

void StepLedger::RejectAdmitted(uint64_t env_steps) {
  // Steps that are no longer admitted were dropped as lost meanwhile, and stay lost.
  const uint64_t rejected = std::min(env_steps, admitted_);
  admitted_ -= rejected;
  rejected_ += rejected;
}

void StepLedger::Close(const ConnectionId& key, Connection* connection) {
  if (connection->closed) return;
  const uint64_t missing = connection->collected - connection->arrived;
  in_transit_ -= missing;
  lost_ += missing;
  connection->closed = true;
  connection->connected = false;
  closed_.push_back(key);
}

void StepLedger::ForgetOldest() {
  while (closed_.size() > kMostClosed) {
    connections_.erase(closed_.front());
    closed_.pop_front();
  }
}

uint64_t StepLedger::Depart(const ConnectionId& key, uint64_t collected) {
  auto it = connections_.find(key);
  if (it == connections_.end() || it->second.closed) return 0;
  Connection& connection = it->second;
  const uint64_t rest = !several_ || connection.came_here ? Claim(collected, &connection) : 0;
  Close(it->first, &connection);
  ForgetOldest();
  return rest;
}

void StepLedger::Disconnect(const ConnectionId& key, absl::Duration now) {
  auto it = connections_.find(key);
  if (it == connections_.end() || it->second.closed) return;
  it->second.connected = false;
  it->second.came_here = false;
  it->second.disconnected_at = now;
}

void StepLedger::CloseSilent(absl::Duration now, absl::Duration grace) {
  for (auto it = connections_.begin(); it != connections_.end();) {
    Connection& connection = it->second;
    const bool silent = !connection.closed && !connection.connected && now - connection.disconnected_at >= grace;
    if (silent && connection.last_sequence == 0) {
      it = connections_.erase(it);  // Nothing has come from it.
      continue;
    }
    if (silent) Close(it->first, &connection);
    ++it;
  }
  ForgetOldest();
}

void StepLedger::DropStale(uint64_t env_steps) {
  admitted_ -= env_steps;
  stale_ += env_steps;
}

void StepLedger::Trained(uint64_t env_steps) {
  admitted_ -= env_steps;
  trained_ += env_steps;
}

void StepLedger::DropAdmitted() {
  lost_ += admitted_;
  admitted_ = 0;
}

void StepLedger::CloseAll() {
  for (auto& [key, connection] : connections_) Close(key, &connection);
  ForgetOldest();
  DropAdmitted();
}

v1::StepAccount StepLedger::account() const {
  v1::StepAccount account;
  account.set_collected(collected_);
  account.set_trained(trained_);
  account.set_stale(stale_);
  account.set_rejected(rejected_);
  account.set_lost(lost_);
  account.set_pending(admitted_ + in_transit_);
  return account;
}

int64_t StepLedger::imbalance() const {
  return static_cast<int64_t>(collected_) -
         static_cast<int64_t>(trained_ + stale_ + rejected_ + lost_ + admitted_ + in_transit_);
}

}  // namespace skein
