// SPDX-License-Identifier: Apache-2.0
// The ticket office's sense of time: who is how fast, what is late, what nobody waits for any more.
#include <algorithm>

#include "learner/collect/ticket_office.h"

namespace skein {
namespace {

// Weight of the newest time in an actor's average.
constexpr double kNewest = 0.3;
// An actor is only ever passed over if it takes this many times as long as the fastest.
constexpr double kSlow = 2;
// Less than this is not worth a second actor's time, nor passing one over.
constexpr absl::Duration kWorthwhile = absl::Milliseconds(20);
// A ticket is late when it has taken this many times what its holder usually needs.
constexpr double kLate = 2;
// A ticket that has not come back after this many times the usual time is left unserved: one that is open after the
// least patience at the earliest, and the most at the latest or, if that is longer, so many times the fastest's time.
// While nothing is known of anybody's speed it is after the most, and nobody is blamed for it.
constexpr double kUnserved = 10;
constexpr absl::Duration kLeastPatience = absl::Seconds(5);
constexpr absl::Duration kMostPatience = absl::Seconds(60);
constexpr double kMostTimesBest = 100;
// A passed-over actor is tried again after this many times what it needed last, and after the longest pause at the
// latest: what made it slow, a link for example, may be over.
constexpr double kTryAgain = 20;
constexpr absl::Duration kLongestPause = absl::Seconds(10);

}  // namespace

void TicketOffice::Return(const ActorKey& actor, uint64_t ticket_id, std::optional<absl::Duration> now) {
  bool granted_once = true;
  if (auto open = block_of_ticket_.find(ticket_id); open != block_of_ticket_.end()) {
    Block& block = blocks_[open->second];
    LetGo(actor, &block);
    granted_once = !block.taken_back;
  }
  auto it = actors_.find(actor);
  if (it == actors_.end()) return;
  Actor& a = it->second;
  const bool dropped = a.dropped.count(ticket_id) > 0, in_time = dropped || a.held.count(ticket_id) > 0;
  std::map<uint64_t, absl::Duration>& with_it = dropped ? a.dropped : in_time ? a.held : a.overdue;
  const auto held = with_it.find(ticket_id);
  if (held == with_it.end()) return;
  if (now) in_time ? a.standing.Serve() : a.standing.ServeLate();
  if (now && (granted_once || !in_time)) {
    // Of what it holds beyond its runners, a ticket waits for its turn.
    const double waiting = std::max(1.0, static_cast<double>(a.held.size()) / a.runners);
    const absl::Duration took = (*now - held->second) / waiting;
    // An average of the time when it was slow says nothing of an actor that has just been tried and is not.
    const bool news = a.service == absl::ZeroDuration() || (took < a.service && TrialIsDue(a, held->second));
    a.service = news ? took : a.service + kNewest * (took - a.service);
    a.measured = *now;
  }
  with_it.erase(held);
}

absl::Duration TicketOffice::BestService() const {
  absl::Duration best = absl::ZeroDuration();
  for (const auto& [key, actor] : actors_) {
    if (actor.service == absl::ZeroDuration()) continue;
    if (best == absl::ZeroDuration() || actor.service < best) best = actor.service;
  }
  return best;
}

// Whether an actor that was slow has not answered for so long that it may not be slow any more.
bool TicketOffice::TrialIsDue(const Actor& actor, absl::Duration now) const {
  return now - actor.measured > std::min(kTryAgain * actor.service, kLongestPause) &&
         actor.service > kSlow * BestService();
}

// Whether the others would be done with all that is open before `actor` with this ticket and what follows from it.
bool TicketOffice::TooSlow(const Actor& actor, const Block& block, absl::Duration now) const {
  const absl::Duration best = BestService();
  if (versions_.empty() || actor.service <= std::max(kSlow * best, best + kWorthwhile)) return false;
  double others_per_second = 0;
  for (const auto& [key, other] : actors_) {
    if (&other == &actor) continue;
    const absl::Duration service = other.service == absl::ZeroDuration() ? best : other.service;
    others_per_second += other.Runners(now) / absl::ToDoubleSeconds(service);
  }
  if (others_per_second == 0) return false;
  uint32_t fragments = 0;
  for (const Block& open : blocks_) fragments += open.to_come;
  const absl::Duration without = absl::Seconds(fragments / others_per_second) + best;
  return actor.service + (block.to_come - 1) * best > without;
}

void TicketOffice::TakeBackUnserved(absl::Duration now) {
  const absl::Duration best = BestService();
  for (auto& [key, actor] : actors_) {
    const absl::Duration usual = kUnserved * std::max(actor.service, best);
    const bool unknown = usual == absl::ZeroDuration();  // Nobody is blamed then.
    const double waiting = std::max(1.0, static_cast<double>(actor.held.size()) / actor.runners);
    const absl::Duration patience =
        unknown ? kMostPatience
                : std::clamp(usual * waiting, kLeastPatience, std::max(kMostPatience, kMostTimesBest * best));
    // A void one it may have dropped, if the policy for it was gone: then it has nothing to do, and it may be fast now.
    const absl::Duration seems_dropped =
        unknown ? kLongestPause : std::min(usual, std::max(kLongestPause, kLate / kUnserved * usual * waiting));
    bool unserved =
        !unknown && std::erase_if(actor.dropped, [&](const auto& held) { return now - held.second > usual; }) > 0;
    for (auto it = actor.held.begin(); it != actor.held.end();) {
      const auto open = block_of_ticket_.find(it->first);
      const bool is_void = open == block_of_ticket_.end();
      if (now - it->second <= (is_void ? seems_dropped : patience)) {
        ++it;
        continue;
      }
      if (!is_void && LetGo(key, &blocks_[open->second])) blocks_[open->second].taken_back = true;
      const bool in_time = is_void && (unknown || now - it->second <= usual);
      (in_time ? actor.dropped : actor.overdue).insert(*it);
      it = actor.held.erase(it);
      unserved = unserved || !(in_time || unknown);
    }
    if (unserved) actor.standing.LeaveUnserved(now);
    while (actor.dropped.size() > actor.credits) actor.dropped.erase(actor.dropped.begin());
    while (actor.overdue.size() > actor.credits) actor.overdue.erase(actor.overdue.begin());
  }
}

// How long until the block's newest holder answers, by what is known of it; how long it has had the ticket, if nothing
// is.
absl::Duration TicketOffice::ExpectedRemaining(const Block& block, absl::Duration now) const {
  auto it = actors_.find(block.holders.back());
  if (it == actors_.end()) return absl::InfiniteDuration();
  const Actor& holder = it->second;
  const absl::Duration usual = holder.service == absl::ZeroDuration() ? BestService() : holder.service;
  auto held = holder.held.find(block.ticket_id);
  if (held == holder.held.end()) return absl::ZeroDuration();
  const absl::Duration elapsed = now - held->second;
  const double waiting = std::max(1.0, static_cast<double>(holder.held.size()) / holder.runners);
  if (elapsed < usual * waiting) return usual * waiting - elapsed;
  return elapsed > kLate * waiting * usual ? elapsed : absl::ZeroDuration();
}

bool TicketOffice::GrantAnother(absl::Duration worth, size_t most_holders, ActorEntry* entry, absl::Duration now,
                                std::vector<std::pair<ActorKey, v1::Ticket>>* grants) {
  const Block* latest = nullptr;
  absl::Duration longest = worth;
  for (const Block& block : blocks_) {
    if (block.ticket_id == 0 || block.holders.empty() || block.holders.size() > most_holders) continue;
    if (entry->second.held.count(block.ticket_id) > 0 || entry->second.overdue.count(block.ticket_id) > 0) continue;
    const absl::Duration remaining = ExpectedRemaining(block, now);
    if (remaining <= longest) continue;
    longest = remaining;
    latest = &block;
  }
  if (latest == nullptr) return false;
  grants->emplace_back(entry->first, Give(static_cast<uint32_t>(latest - blocks_.data()), entry, now));
  return true;
}

void TicketOffice::GrantUnanswered(absl::Duration now, std::vector<std::pair<ActorKey, v1::Ticket>>* grants) {
  std::vector<ActorEntry*> idle;
  for (auto& entry : actors_) {
    if (entry.second.Idle(now)) idle.push_back(&entry);
  }
  // One each in turn: nobody who takes all keeps the others from their first.
  while (!idle.empty()) {
    const auto next = std::min_element(idle.begin(), idle.end(), [](const ActorEntry* a, const ActorEntry* b) {
      return a->second.GoesBefore(b->second);
    });
    if (!GrantAnother(kLeastPatience, actors_.size(), *next, now, grants) || !(*next)->second.Idle(now)) {
      idle.erase(next);
    }
  }
}

void TicketOffice::GrantLate(absl::Duration now, std::vector<std::pair<ActorKey, v1::Ticket>>* grants) {
  const absl::Duration best = BestService();
  for (auto& entry : actors_) {
    const Actor& actor = entry.second;
    const absl::Duration service = actor.service == absl::ZeroDuration() ? best : actor.service;
    while (actor.Idle(now) && GrantAnother(std::max(service, kWorthwhile), 1, &entry, now, grants)) continue;
  }
  // Now and then a slow actor is given a ticket to see whether it still is: one that nobody else would take over now.
  for (auto& entry : actors_) {
    const Actor& actor = entry.second;
    if (actor.held.empty() && actor.Idle(now) && TrialIsDue(actor, now)) {
      GrantAnother(absl::ZeroDuration(), 1, &entry, now, grants);
    }
  }
}

}  // namespace skein
