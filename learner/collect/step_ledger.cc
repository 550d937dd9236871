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

bool StepLedger::Open(const ActorKey& key) {
  Life& life = lives_[key];
  if (life.closed) return false;
  life.connected = true;
  life.came_here = false;
  return true;
}

bool StepLedger::closed(const ActorKey& key) const {
  auto it = lives_.find(key);
  return it != lives_.end() && it->second.closed;
}

uint64_t StepLedger::last_sequence(const ActorKey& key) const {
  auto it = lives_.find(key);
  return it == lives_.end() ? 0 : it->second.last_sequence;
}

void StepLedger::Grant(const ActorKey& key, uint64_t env_steps) {
  const auto it = lives_.find(key);
  if (it != lives_.end()) it->second.unserved += env_steps;
}

uint64_t StepLedger::Claim(uint64_t claimed, Life* life) {
  const uint64_t counted = std::max(std::min(claimed, life->arrived + life->unserved), life->collected);
  in_transit_ += counted - life->collected;
  collected_ += counted - life->collected;
  life->collected = counted;
  return claimed - std::min(claimed, counted);
}

uint64_t StepLedger::Arrive(const ActorKey& key, uint64_t sequence, uint64_t env_steps, uint64_t collected, Fate fate) {
  Life& life = lives_[key];
  if (sequence > life.last_sequence + 1 && (several_ || life.last_sequence == 0)) {
    const uint64_t counted = life.collected + env_steps;
    const uint64_t elsewhere = collected - std::min(collected, counted);
    life.collected += elsewhere;
    life.arrived += elsewhere;
  }
  life.last_sequence = sequence;
  life.came_here = true;
  if (fate == Fate::kAdmitted) life.unserved -= std::min(life.unserved, env_steps);
  life.arrived += env_steps;
  // An actor cannot have finished less than what came from it: a lower claim is raised.
  const uint64_t rest = Claim(std::max(collected, life.arrived), &life);
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
  // What is no longer admitted was dropped as lost meanwhile, and stays so.
  const uint64_t rejected = std::min(env_steps, admitted_);
  admitted_ -= rejected;
  rejected_ += rejected;
}

void StepLedger::Close(const ActorKey& key, Life* life) {
  if (life->closed) return;
  const uint64_t missing = life->collected - life->arrived;
  in_transit_ -= missing;
  lost_ += missing;
  life->closed = true;
  life->connected = false;
  closed_.push_back(key);
}

void StepLedger::ForgetOldest() {
  while (closed_.size() > kMostClosed) {
    lives_.erase(closed_.front());
    closed_.pop_front();
  }
}

uint64_t StepLedger::Depart(const ActorKey& key, uint64_t collected) {
  auto it = lives_.find(key);
  if (it == lives_.end() || it->second.closed) return 0;
  Life& life = it->second;
  const uint64_t rest = !several_ || life.came_here ? Claim(collected, &life) : 0;
  Close(it->first, &life);
  ForgetOldest();
  return rest;
}

void StepLedger::Disconnect(const ActorKey& key, absl::Duration now) {
  auto it = lives_.find(key);
  if (it == lives_.end() || it->second.closed) return;
  it->second.connected = false;
  it->second.came_here = false;
  it->second.disconnected_at = now;
}

void StepLedger::CloseSilent(absl::Duration now, absl::Duration grace) {
  for (auto it = lives_.begin(); it != lives_.end();) {
    Life& life = it->second;
    const bool silent = !life.closed && !life.connected && now - life.disconnected_at >= grace;
    if (silent && life.last_sequence == 0) {
      it = lives_.erase(it);  // Nothing has come from it.
      continue;
    }
    if (silent) Close(it->first, &life);
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
  for (auto& [key, life] : lives_) Close(key, &life);
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
