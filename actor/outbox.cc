// SPDX-License-Identifier: Apache-2.0
#include "actor/outbox.h"

#include <algorithm>
#include <utility>

#include "base/process/clock.h"
#include "base/process/steady_wait.h"

namespace skein {

Outbox::Connection Outbox::BeginConnection(const std::string& actor_id, uint64_t generation, Undelivered undelivered) {
  absl::MutexLock lock(&mu_);
  if (connection_.actor_id == actor_id && connection_.generation == generation) return before_;
  if (undelivered == Undelivered::kGivenUp) {
    for (const Pending& pending : pending_) in_hand_.erase(pending.ticket_id);
    pending_.clear();
  }
  for (const Pending& pending : pending_) connection_.env_steps_collected -= EnvSteps(pending.fragment->header);
  before_ = connection_;
  earlier_env_steps_ += connection_.env_steps_collected;
  connection_ = {actor_id, generation, 0};
  last_sequence_ = 0;
  sent_sequence_ = 0;
  RenumberPending();
  return before_;
}

void Outbox::RenumberPending() {
  for (Pending& pending : pending_) {
    auto fragment = std::make_shared<Fragment>(*pending.fragment);
    Sign(&fragment->header);
    pending.sequence = last_sequence_;
    pending.fragment = std::move(fragment);
  }
}

void Outbox::Sign(v1::FragmentHeader* header) {
  connection_.env_steps_collected += EnvSteps(*header);
  header->set_actor_id(connection_.actor_id);
  header->set_generation(connection_.generation);
  header->set_sequence(++last_sequence_);
  header->set_env_steps_collected(connection_.env_steps_collected);
}

void Outbox::BeginStream(uint64_t stream, uint64_t last_sequence) {
  absl::MutexLock lock(&mu_);
  stream_ = stream;
  connected_ = true;
  leaving_ = false;
  tickets_.clear();
  granted_anew_.clear();
  while (!pending_.empty() && pending_.front().sequence <= last_sequence) {
    in_hand_.erase(pending_.front().ticket_id);
    pending_.pop_front();
  }
  sent_sequence_ = last_sequence;
}

void Outbox::EndStream(uint64_t stream) {
  absl::MutexLock lock(&mu_);
  if (stream != stream_) return;
  connected_ = false;
  tickets_.clear();
  granted_anew_.clear();
}

void Outbox::LeaveStream(uint64_t stream) {
  {
    absl::MutexLock lock(&mu_);
    if (stream != stream_) return;
    leaving_ = true;
    tickets_.clear();
    granted_anew_.clear();
  }
  TellWatcher();
}

void Outbox::Watch(std::function<void()> changed) {
  absl::MutexLock lock(&watch_mu_);
  changed_ = std::move(changed);
}

void Outbox::TellWatcher() {
  absl::ReaderMutexLock lock(&watch_mu_);
  if (changed_) changed_();
}

void Outbox::AddTicket(uint64_t stream, const v1::Ticket& ticket) {
  absl::MutexLock lock(&mu_);
  if (stopped_ || leaving_ || stream != stream_) return;
  if (in_hand_.count(ticket.id()) > 0) {
    granted_anew_[ticket.id()] = {ticket, stream};
  } else {
    tickets_.push_back({ticket, stream});
  }
}

std::optional<HeldTicket> Outbox::TakeTicket(const std::function<bool()>& or_else) {
  absl::MutexLock lock(&mu_);
  const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopped_ || !tickets_.empty() || or_else(); };
  mu_.Await(absl::Condition(&ready));
  if (stopped_ || tickets_.empty()) return std::nullopt;
  HeldTicket held = std::move(tickets_.front());
  tickets_.pop_front();
  in_hand_.insert(held.ticket.id());
  return held;
}

// Threads in Await evaluate their conditions again when the mutex is released.
void Outbox::Nudge() { const absl::MutexLock lock(&mu_); }

bool Outbox::stopped() const {
  absl::MutexLock lock(&mu_);
  return stopped_;
}

bool Outbox::HasWork() const {
  absl::MutexLock lock(&mu_);
  return stopped_ || !tickets_.empty();
}

void Outbox::DropTicket(uint64_t ticket_id) {
  {
    absl::MutexLock lock(&mu_);
    Release(ticket_id);
  }
  TellWatcher();
}

void Outbox::Release(uint64_t ticket_id) {
  in_hand_.erase(ticket_id);
  auto anew = granted_anew_.find(ticket_id);
  if (anew == granted_anew_.end()) return;
  if (!stopped_) tickets_.push_front(std::move(anew->second));
  granted_anew_.erase(anew);
}

bool Outbox::PutFragment(Fragment fragment) {
  const bool dropped = PutFragmentQuietly(std::move(fragment));
  TellWatcher();
  return dropped;
}

bool Outbox::PutFragmentQuietly(Fragment fragment) {
  Pending dropped;  // Freed after the lock is.
  absl::MutexLock lock(&mu_);
  const bool full = pending_.size() >= most_;
  if (full) {
    dropped = std::move(pending_.front());
    pending_.pop_front();
    Release(dropped.ticket_id);
  }
  Sign(&fragment.header);
  const uint64_t ticket_id = fragment.header.ticket_id();
  pending_.push_back(
      {last_sequence_, ticket_id, MonotonicNow(), std::make_shared<const Fragment>(std::move(fragment))});
  return full;
}

Outbox::ToSend Outbox::TryNextToSend(uint64_t stream) {
  absl::MutexLock lock(&mu_);
  if (SendingIsOver(stream)) return {.over = true};
  const auto unsent = FindUnsent();
  if (unsent == pending_.end()) return {};
  sent_sequence_ = unsent->sequence;
  return {.fragment = unsent->fragment};
}

std::shared_ptr<const Fragment> Outbox::NextToSend(uint64_t stream) {
  {
    absl::MutexLock lock(&mu_);
    const auto decided = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return SendingIsOver(stream) || FindUnsent() != pending_.end();
    };
    mu_.Await(absl::Condition(&decided));
  }
  return TryNextToSend(stream).fragment;
}

std::deque<Outbox::Pending>::const_iterator Outbox::FindUnsent() const {
  return std::find_if(pending_.begin(), pending_.end(),
                      [this](const Pending& pending)
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return pending.sequence > sent_sequence_; });
}

bool Outbox::SendingIsOver(uint64_t stream) const {
  if (!connected_ || stream != stream_) return true;
  if (FindUnsent() != pending_.end()) return false;
  return stop_sending_ || (leaving_ && in_hand_.empty() && pending_.empty());
}

void Outbox::Acknowledge(const v1::Receipt& receipt) {
  AcknowledgeQuietly(receipt);
  TellWatcher();
}

void Outbox::AcknowledgeQuietly(const v1::Receipt& receipt) {
  Pending receipted;  // Freed after the lock is.
  absl::MutexLock lock(&mu_);
  for (auto it = pending_.begin(); it != pending_.end(); ++it) {
    if (it->sequence != receipt.sequence()) continue;
    receipted = std::move(*it);
    const uint64_t ticket_id = receipted.ticket_id;
    pending_.erase(it);
    in_hand_.erase(ticket_id);
    auto anew = granted_anew_.find(ticket_id);
    if (anew == granted_anew_.end()) return;
    // The learner granted the ticket once more before this receipt: what it refused is to be done again.
    const bool served = receipt.result() == v1::RECEIPT_RESULT_ACCEPTED;
    if (!served && !stopped_) tickets_.push_front(std::move(anew->second));
    granted_anew_.erase(anew);
    return;
  }
}

void Outbox::Stop() {
  absl::MutexLock lock(&mu_);
  stopped_ = true;
  tickets_.clear();
}

void Outbox::StopSending() {
  {
    absl::MutexLock lock(&mu_);
    stop_sending_ = true;
  }
  TellWatcher();
}

bool Outbox::WaitUntilReceipted(absl::Duration timeout) {
  absl::MutexLock lock(&mu_);
  const auto decided = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return pending_.empty() || given_up_; };
  AwaitFor(&mu_, absl::Condition(&decided), timeout);
  return pending_.empty();
}

void Outbox::GiveUp() {
  absl::MutexLock lock(&mu_);
  given_up_ = true;
}

Outbox::Connection Outbox::connection() const {
  absl::MutexLock lock(&mu_);
  return connection_;
}

uint64_t Outbox::env_steps_collected() const {
  absl::MutexLock lock(&mu_);
  return earlier_env_steps_ + connection_.env_steps_collected;
}

size_t Outbox::unreceipted() const {
  absl::MutexLock lock(&mu_);
  return pending_.size();
}

absl::Duration Outbox::waiting() const {
  absl::MutexLock lock(&mu_);
  return pending_.empty() ? absl::ZeroDuration() : MonotonicNow() - pending_.front().finished;
}

}  // namespace skein
