// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/actor_record.h"

#include "learner/collect/ticket_timing.h"

namespace skein {

ActorRecord::ActorRecord(uint32_t credits, uint32_t runners, const ActorStanding& standing, uint64_t turn)
    : runners_(std::clamp(runners, 1u, kMostRunners)),
      credits_(std::clamp(credits, 1u, 2 * runners_)),
      standing_(standing),
      last_turn_(turn) {}

bool ActorRecord::GoesBefore(const ActorRecord& other) const {
  // in_hand / runners, compared without division.
  const size_t mine = in_hand_.size() * other.runners_, others = other.in_hand_.size() * runners_;
  return mine != others ? mine < others : last_turn_ < other.last_turn_;
}

std::vector<uint64_t> ActorRecord::Unserved() const {
  std::vector<uint64_t> unserved;
  for (const auto& [ticket_id, left] : left_) {
    if (left.unserved) unserved.push_back(ticket_id);
  }
  return unserved;
}

void ActorRecord::Grant(uint64_t ticket_id, absl::Duration now, uint64_t turn) {
  in_hand_[ticket_id] = now;
  last_turn_ = turn;
}

void ActorRecord::DropVoid(absl::FunctionRef<bool(uint64_t)> is_open) {
  std::erase_if(in_hand_, [&](const auto& held) { return !is_open(held.first); });
  std::erase_if(left_, [](const auto& left) { return !left.second.unserved; });
}

void ActorRecord::GiveBack(uint64_t ticket_id) {
  in_hand_.erase(ticket_id);
  left_.erase(ticket_id);
}

void ActorRecord::Answer(uint64_t ticket_id, bool granted_once, absl::Duration fastest, absl::Duration now) {
  const auto held = in_hand_.find(ticket_id);
  const auto left = left_.find(ticket_id);
  if (held == in_hand_.end() && left == left_.end()) return;
  const absl::Duration granted = held != in_hand_.end() ? held->second : left->second.granted;
  const bool in_time = held != in_hand_.end() || !left->second.unserved;
  in_time ? standing_.Serve() : standing_.ServeLate();
  if (granted_once || !in_time) {
    // A ticket beyond its runners waits for its turn.
    const absl::Duration took = (now - granted) / PerRunner();
    // After a successful trial the old, slow average is replaced.
    const bool news = service_ == absl::ZeroDuration() || (took < service_ && TrialIsDue(fastest, granted));
    service_ = news ? took : service_ + kNewestWeight * (took - service_);
    measured_ = now;
  }
  GiveBack(ticket_id);
}

std::vector<uint64_t> ActorRecord::TakeBackUnserved(absl::Duration fastest, absl::Duration now, bool take_back,
                                                    absl::FunctionRef<bool(uint64_t)> is_open) {
  const TicketDeadlines deadlines = DeadlinesOf(service_, fastest, PerRunner());
  const bool blames = fastest != absl::ZeroDuration();
  std::vector<uint64_t> taken;
  bool unserved = false;
  for (auto& [ticket_id, left] : left_) {
    if (left.unserved || now - left.granted <= deadlines.void_unserved) continue;
    left.unserved = unserved = true;
  }
  for (auto it = in_hand_.begin(); it != in_hand_.end();) {
    const absl::Duration age = now - it->second;
    const bool open = is_open(it->first);
    if (open && !take_back) {
      ++it;
      continue;
    }
    if (age <= (open ? deadlines.taken_back : deadlines.void_free)) {
      ++it;
      continue;
    }
    const bool counts = open || age > deadlines.void_unserved;
    left_[it->first] = {it->second, counts};
    if (open) taken.push_back(it->first);
    unserved = unserved || (counts && blames);
    it = in_hand_.erase(it);
  }
  if (unserved) standing_.LeaveUnserved(now);
  while (left_.size() > 2 * credits_) left_.erase(left_.begin());
  return taken;
}

absl::Duration ActorRecord::ExpectedRemaining(uint64_t ticket_id, absl::Duration fastest, absl::Duration now) const {
  const auto held = in_hand_.find(ticket_id);
  if (held == in_hand_.end()) return absl::ZeroDuration();
  const absl::Duration elapsed = now - held->second, usual = Usual(fastest) * PerRunner();
  if (elapsed < usual) return usual - elapsed;
  return elapsed > DeadlinesOf(service_, fastest, PerRunner()).late ? elapsed : absl::ZeroDuration();
}

bool ActorRecord::TrialIsDue(absl::Duration fastest, absl::Duration now) const {
  return now - measured_ > std::min(kTryAgain * service_, kLongestPause) && service_ > kSlow * fastest;
}

}  // namespace skein
