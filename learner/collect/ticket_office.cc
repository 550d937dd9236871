// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/ticket_office.h"

#include <algorithm>
#include <map>

#include "learner/collect/ticket_timing.h"

namespace skein {

void TicketOffice::TakeShare(uint32_t first_env, uint32_t share_envs) {
  CloseIteration();
  unowned_since_.clear();
  groups_.TakeShare(first_env, share_envs);
}

void TicketOffice::CloseIteration() {
  for (const EnvGroup& group : groups_.all()) {
    for (const ConnectionId& holder : group.holders.now()) actors_.Find(holder)->Drop(group.ticket_id);
  }
  groups_.CloseIteration();
}

std::vector<uint32_t> TicketOffice::EndIteration() {
  if (!groups_.front_complete()) {
    // Actors drop the tickets that they have not answered before the end of this iteration.
    for (auto& [key, actor] : actors_.records()) actor.DropVoid([this](uint64_t id) { return groups_.IsOpen(id); });
  }
  return groups_.EndIteration();
}

void TicketOffice::AddActor(const ConnectionId& actor, uint32_t credits, uint32_t runners) {
  RemoveActor(actor);
  actors_.Add(actor, credits, runners);
}

void TicketOffice::RemoveActor(const ConnectionId& actor) {
  groups_.Forget(actor);
  actors_.Remove(actor);
}

TicketOffice::Grants TicketOffice::Grant(absl::Duration now) {
  Grants grants;
  TakeBackUnserved(now);
  GrantWaiting(now, &grants);
  GrantCopies(now, &grants);
  return grants;
}

void TicketOffice::TakeBackUnserved(absl::Duration now) {
  const absl::Duration fastest = actors_.Fastest();
  const auto is_open = [this](uint64_t ticket_id) { return groups_.IsOpen(ticket_id); };
  for (auto& [key, actor] : actors_.records()) {
    for (const uint64_t ticket : actor.TakeBackUnserved(fastest, now, groups_.relocatable(), is_open)) {
      groups_.TakeBack(*groups_.Find(ticket), key);
    }
  }
}

void TicketOffice::GrantWaiting(absl::Duration now, Grants* grants) {
  const absl::Duration fastest = actors_.Fastest();
  const uint64_t runners = actors_.Runners(now);
  const std::vector<uint32_t> waiting = groups_.Waiting();
  size_t left = waiting.size() + groups_.fragments_behind();
  std::map<ConnectionId, uint32_t> owned = groups_.Owned();
  for (const uint32_t g : waiting) {
    const EnvGroup& group = groups_[g];
    const bool to_be_owned = !groups_.relocatable() && !group.owner;
    const bool overdue = to_be_owned && now - unowned_since_.emplace(g, now).first->second >= kUnowned;
    ActorEntry* best = nullptr;
    for (ActorEntry& entry : actors_.records()) {
      const ActorRecord& actor = entry.second;
      if (!groups_.MayGo(g, entry.first) || actor.Has(group.ticket_id)) continue;
      if (to_be_owned && !overdue && owned[entry.first] >= actor.Runners(now)) continue;
      // More tickets than its runners only if enough tickets are left for every runner.
      const bool may = actor.Idle(now) || (actor.in_hand() < actor.Credits(now) && left > runners);
      if (!may || (best != nullptr && !actor.GoesBefore(best->second))) continue;
      if (group.owner || !TooSlow(actor, group, fastest, now)) best = &entry;
    }
    if (best == nullptr) continue;
    if (to_be_owned) ++owned[best->first];
    unowned_since_.erase(g);
    Give(g, best, now, grants);
    --left;
  }
}

bool TicketOffice::TooSlow(const ActorRecord& actor, const EnvGroup& group, absl::Duration fastest,
                           absl::Duration now) const {
  if (groups_.asynchronous() || actor.service() <= std::max(kSlow * fastest, fastest + kWorthwhile)) return false;
  const double others_per_second = actors_.OthersPerSecond(actor, fastest, now);
  if (others_per_second == 0) return false;
  const absl::Duration without = absl::Seconds(groups_.fragments_to_come() / others_per_second) + fastest;
  return actor.service() + (group.to_come - 1) * fastest > without;
}

void TicketOffice::GrantCopies(absl::Duration now, Grants* grants) {
  const absl::Duration fastest = actors_.Fastest();
  const bool known = fastest != absl::ZeroDuration();
  // In mode async no iteration waits for a late ticket.
  if (!groups_.relocatable() || (known && groups_.asynchronous())) return;
  const size_t most_holders = known ? 1 : actors_.records().size();
  std::vector<Candidate> candidates = CopyCandidates(most_holders, fastest, now);
  if (candidates.empty()) return;
  const absl::Duration least_worth = known ? kWorthwhile : absl::ZeroDuration();
  std::vector<ActorEntry*> idle = IdleActors(now);
  // One ticket at a time, so that every idle actor gets its first before any gets many.
  while (!idle.empty() && !candidates.empty() && candidates.front().remaining > least_worth) {
    const auto next = std::min_element(idle.begin(), idle.end(), [](const ActorEntry* a, const ActorEntry* b) {
      return a->second.GoesBefore(b->second);
    });
    const ActorRecord& actor = (*next)->second;
    const absl::Duration worth = known ? std::max(actor.Usual(fastest), kWorthwhile) : absl::ZeroDuration();
    const bool granted = GrantCopy(candidates, worth, now, *next, grants);
    if (granted) candidates = CopyCandidates(most_holders, fastest, now);
    if (!granted || !actor.Idle(now)) idle.erase(next);
  }
  // Trials of slow actors come last, with tickets that no other actor would take over now.
  for (ActorEntry* entry : IdleActors(now)) {
    const ActorRecord& actor = entry->second;
    if (actor.in_hand() == 0 && actor.TrialIsDue(fastest, now) &&
        GrantCopy(candidates, absl::ZeroDuration(), now, entry, grants)) {
      candidates = CopyCandidates(most_holders, fastest, now);
    }
  }
}

std::vector<TicketOffice::ActorEntry*> TicketOffice::IdleActors(absl::Duration now) {
  std::vector<ActorEntry*> idle;
  for (ActorEntry& entry : actors_.records()) {
    if (entry.second.Idle(now)) idle.push_back(&entry);
  }
  return idle;
}

std::vector<TicketOffice::Candidate> TicketOffice::CopyCandidates(size_t most_holders, absl::Duration fastest,
                                                                  absl::Duration now) const {
  std::vector<Candidate> candidates;
  for (uint32_t g = 0; g < groups_.all().size(); ++g) {
    const EnvGroup& group = groups_[g];
    const std::vector<ConnectionId>& holders = group.holders.now();
    if (holders.empty() || holders.size() > most_holders) continue;
    const ActorRecord& holder = *actors_.Find(holders.back());
    const absl::Duration remaining = holder.ExpectedRemaining(group.ticket_id, fastest, now);
    if (remaining > absl::ZeroDuration()) candidates.push_back({g, remaining});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.remaining > b.remaining; });
  return candidates;
}

bool TicketOffice::GrantCopy(const std::vector<Candidate>& candidates, absl::Duration worth, absl::Duration now,
                             ActorEntry* entry, Grants* grants) {
  for (const Candidate& ticket : candidates) {
    if (ticket.remaining <= worth) return false;
    if (entry->second.Has(groups_[ticket.group].ticket_id)) continue;
    Give(ticket.group, entry, now, grants);
    return true;
  }
  return false;
}

void TicketOffice::Give(uint32_t group, ActorEntry* entry, absl::Duration now, Grants* grants) {
  actors_.Grant(entry->first, groups_[group].ticket_id, now);
  grants->emplace_back(entry->first, groups_.Give(group, entry->first));
}

std::optional<Piece> TicketOffice::PieceOf(uint64_t ticket_id) const {
  const auto group = groups_.Find(ticket_id);
  return group ? std::optional(groups_.Next(*group)) : std::nullopt;
}

bool TicketOffice::GrantedTo(const ConnectionId& actor, uint64_t ticket_id) const {
  const auto group = groups_.Find(ticket_id);
  return group && groups_[*group].holders.MayBeAnsweredBy(actor);
}

std::optional<Piece> TicketOffice::Accept(const ConnectionId& actor, uint64_t ticket_id, absl::Duration now) {
  const auto group = groups_.Find(ticket_id);
  const bool granted = GrantedTo(actor, ticket_id);
  if (group) groups_.Release(*group, actor);
  if (ActorRecord* record = actors_.Find(actor); record != nullptr) {
    const bool granted_once = !group || !groups_[*group].holders.taken_back();
    record->Answer(ticket_id, granted_once, actors_.Fastest(), now);
  }
  if (!granted) return std::nullopt;
  groups_.Accept(*group);  // Other holders still work on it: it stays in their records.
  return groups_.Next(*group);
}

void TicketOffice::Refuse(const ConnectionId& actor, uint64_t ticket_id) {
  if (ActorRecord* record = actors_.Find(actor); record != nullptr) record->GiveBack(ticket_id);
  const auto group = groups_.Find(ticket_id);
  if (!group) return;
  const bool owns = groups_[*group].owner == actor;
  groups_.Release(*group, actor);
  if (owns) groups_.Restart(*group);
}

std::map<ConnectionId, uint32_t> TicketOffice::Holders() const {
  std::map<ConnectionId, uint32_t> holders;
  for (const EnvGroup& group : groups_.all()) {
    for (const ConnectionId& holder : group.holders.now()) ++holders[holder];
  }
  for (const auto& [key, actor] : actors_.records()) {
    for (const uint64_t ticket : actor.Unserved()) {
      const auto group = groups_.Find(ticket);
      if (group && groups_[*group].holders.now().empty()) ++holders[key];
    }
  }
  return holders;
}

}  // namespace skein
