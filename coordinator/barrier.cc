// SPDX-License-Identifier: Apache-2.0
#include "coordinator/barrier.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace skein {
namespace {

std::string Title(const std::string& name, uint64_t generation) {
  return absl::StrCat("barrier \"", name, "\" generation ", generation);
}

absl::Status Passed(const std::string& name, uint64_t generation, uint64_t opened) {
  return absl::FailedPreconditionError(
      absl::StrCat(Title(name, generation), " has passed: generation ", opened, " is open"));
}

absl::Status Check(const BarrierArrival& arrival) {
  if (arrival.name.empty() || arrival.name.size() > Barriers::kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a barrier's name has 1 to ", Barriers::kMaxNameBytes, " bytes; got ", arrival.name.size()));
  }
  if (arrival.timeout <= absl::ZeroDuration() || arrival.timeout > Barriers::kMaxTimeout) {
    return absl::InvalidArgumentError(absl::StrCat("a barrier's timeout must be above 0 and at most ",
                                                   absl::FormatDuration(Barriers::kMaxTimeout), "; got ",
                                                   absl::FormatDuration(arrival.timeout)));
  }
  if (arrival.payload.size() > Barriers::kMaxPayloadBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a barrier's payload has at most ", Barriers::kMaxPayloadBytes,
                                                   " bytes; got ", arrival.payload.size()));
  }
  return absl::OkStatus();
}

constexpr size_t kMostNamed = 20;

std::string NumberText(uint32_t participants) {
  return participants == 0 ? "all live members" : absl::StrCat(participants, " participants");
}

template <typename Arrived>
void ReplyToAll(const Arrived& arrived, const BarrierReply& reply, std::vector<BarrierReply>* replies) {
  for (const auto& [id, arrival] : arrived) {
    for (WaiterId waiter : arrival.waiters) {
      replies->push_back(reply);
      replies->back().waiter = waiter;
    }
  }
}

}  // namespace

void Barriers::Arrive(const BarrierArrival& asked, const std::set<std::string>& live, MonotonicTime now,
                      std::vector<BarrierReply>* replies) {
  BarrierArrival arrival = asked;
  if (absl::Status status = Check(arrival); !status.ok()) {
    replies->push_back({arrival.waiter, status, {}, {}});
    return;
  }
  const Key key{arrival.role, arrival.name};
  if (barriers_.size() >= kMaxNames && barriers_.count(key) == 0) {
    replies->push_back({arrival.waiter,
                        absl::ResourceExhaustedError(absl::StrCat("more than ", kMaxNames, " barrier names")),
                        {},
                        {}});
    return;
  }
  Barrier& barrier = barriers_[key];
  if (arrival.generation == 0) {
    arrival.generation = barrier.rounds.empty() ? barrier.opened_generation + 1 : barrier.rounds.begin()->first;
  }
  if (arrival.generation <= barrier.opened_generation) {
    if (arrival.generation == barrier.opened_generation && barrier.may_repeat.count(arrival.member_id) > 0) {
      replies->push_back({arrival.waiter, absl::OkStatus(), barrier.opened_members, barrier.opened_payloads,
                          barrier.opened_generation});
    } else {
      replies->push_back({arrival.waiter, Passed(arrival.name, arrival.generation, barrier.opened_generation), {}, {}});
    }
    return;
  }
  auto [it, is_first] = barrier.rounds.try_emplace(arrival.generation);
  Round& round = it->second;
  if (is_first) {
    round.number = arrival.participants;
    round.participants = live;
    round.deadline = now + arrival.timeout;
  }
  if (round.number != arrival.participants) {
    replies->push_back({arrival.waiter,
                        absl::FailedPreconditionError(
                            absl::StrCat(Title(arrival.name, arrival.generation), " takes ", NumberText(round.number),
                                         ", as its first arrival said; ", arrival.member_id, " wants ",
                                         NumberText(arrival.participants), ": give all the same number")),
                        {},
                        {}});
    return;
  }
  size_t payloads = arrival.payload.size();
  for (const auto& [id, other] : round.arrived) payloads += id == arrival.member_id ? 0 : other.payload.size();
  if (payloads > kMaxPayloadsBytes) {
    replies->push_back({arrival.waiter,
                        absl::ResourceExhaustedError(absl::StrCat(Title(arrival.name, arrival.generation), " takes ",
                                                                  kMaxPayloadsBytes, " bytes of payload in all; with ",
                                                                  arrival.member_id, "'s it would have ", payloads)),
                        {},
                        {}});
    return;
  }
  round.participants.insert(arrival.member_id);
  round.gone.erase(arrival.member_id);
  Arrival& own = round.arrived[arrival.member_id];
  own.waiters.push_back(arrival.waiter);
  own.payload = arrival.payload;
  OpenWhatIsComplete(key, &barrier, replies);
}

void Barriers::OpenWhatIsComplete(const Key& key, Barrier* barrier, std::vector<BarrierReply>* replies) {
  auto& rounds = barrier->rounds;
  for (auto it = rounds.begin(); it != rounds.end();) {
    const Round& round = it->second;
    if (round.arrived.size() < round.size()) {
      ++it;
      continue;
    }
    changed_.insert(key);
    barrier->opened_generation = it->first;
    barrier->opened_members.clear();
    barrier->opened_payloads.clear();
    for (const auto& [id, arrival] : round.arrived) {
      barrier->opened_members.push_back(id);
      barrier->opened_payloads.push_back(arrival.payload);
    }
    barrier->may_repeat = {barrier->opened_members.begin(), barrier->opened_members.end()};
    for (auto lower = rounds.begin(); lower != it; ++lower) {
      ReplyToAll(lower->second.arrived, {0, Passed(key.second, lower->first, it->first), {}, {}}, replies);
    }
    ReplyToAll(round.arrived, {0, absl::OkStatus(), barrier->opened_members, barrier->opened_payloads, it->first},
               replies);
    it = rounds.erase(rounds.begin(), std::next(it));
  }
}

void Barriers::Cancel(WaiterId waiter) {
  for (auto& [key, barrier] : barriers_) {
    for (auto round = barrier.rounds.begin(); round != barrier.rounds.end(); ++round) {
      auto& arrived = round->second.arrived;
      for (auto member = arrived.begin(); member != arrived.end(); ++member) {
        auto& waiters = member->second.waiters;
        auto found = std::find(waiters.begin(), waiters.end(), waiter);
        if (found == waiters.end()) continue;
        waiters.erase(found);
        if (waiters.empty()) arrived.erase(member);
        if (arrived.empty()) barrier.rounds.erase(round);
        return;
      }
    }
  }
}

void Barriers::AddMember(v1::Role role, const std::string& id) {
  for (auto& [key, barrier] : barriers_) {
    if (key.first != role) continue;
    for (auto& [generation, round] : barrier.rounds) {
      if (round.number == 0) continue;
      round.participants.insert(id);
      round.gone.erase(id);
    }
  }
}

void Barriers::RemoveMembers(const std::set<std::string>& ids, std::vector<BarrierReply>* replies) {
  for (auto& [key, barrier] : barriers_) {
    for (const std::string& id : ids) {
      if (barrier.may_repeat.erase(id) > 0) changed_.insert(key);
    }
    for (auto it = barrier.rounds.begin(); it != barrier.rounds.end();) {
      Round& round = it->second;
      for (const std::string& id : ids) {
        if (round.number == 0) {
          round.participants.erase(id);
        } else if (round.participants.count(id) > 0) {
          round.gone.insert(id);
        }
        auto own = round.arrived.extract(id);
        if (own.empty()) continue;
        const absl::Status gone = absl::FailedPreconditionError(
            absl::StrCat(id, " is no longer a live member; it was waiting at ", Title(key.second, it->first)));
        for (WaiterId waiter : own.mapped().waiters) replies->push_back({waiter, gone, {}, {}});
      }
      it = round.arrived.empty() ? barrier.rounds.erase(it) : std::next(it);
    }
    OpenWhatIsComplete(key, &barrier, replies);
  }
}

void Barriers::ForgetRole(v1::Role role) {
  for (auto it = barriers_.begin(); it != barriers_.end();) {
    const bool forget = it->first.first == role && it->second.rounds.empty();
    if (forget && it->second.opened_generation > 0) changed_.insert(it->first);
    it = forget ? barriers_.erase(it) : std::next(it);
  }
}

std::vector<store::BarrierRecord> Barriers::TakeChanged() {
  std::vector<store::BarrierRecord> records;
  for (const Key& key : changed_) {
    store::BarrierRecord& record = records.emplace_back();
    record.set_role(key.first);
    record.set_name(key.second);
    const auto found = barriers_.find(key);
    if (found == barriers_.end()) continue;
    const Barrier& barrier = found->second;
    record.set_opened_generation(barrier.opened_generation);
    record.mutable_members()->Add(barrier.opened_members.begin(), barrier.opened_members.end());
    record.mutable_payloads()->Add(barrier.opened_payloads.begin(), barrier.opened_payloads.end());
    record.mutable_may_repeat()->Add(barrier.may_repeat.begin(), barrier.may_repeat.end());
  }
  changed_.clear();
  return records;
}

void Barriers::Restore(const store::BarrierRecord& record) {
  Barrier& barrier = barriers_[{record.role(), record.name()}];
  barrier.opened_generation = record.opened_generation();
  barrier.opened_members = {record.members().begin(), record.members().end()};
  barrier.opened_payloads = {record.payloads().begin(), record.payloads().end()};
  barrier.may_repeat = {record.may_repeat().begin(), record.may_repeat().end()};
}

// "1 of 3 arrived; absent: learner-1"; with a number "1 of 3 arrived, 2 missing; absent: learner-1, learner-2 (gone)".
std::string Barriers::AbsenceOf(const Round& round) {
  std::vector<std::string> named;
  size_t absent = 0;
  for (const std::string& id : round.participants) {
    if (round.arrived.count(id) > 0) continue;
    if (++absent <= kMostNamed) named.push_back(round.gone.count(id) > 0 ? id + " (gone)" : id);
  }
  std::string text = absl::StrCat(round.arrived.size(), " of ", round.size(), " arrived");
  if (round.number > 0) absl::StrAppend(&text, ", ", round.number - round.arrived.size(), " missing");
  if (absent > 0) absl::StrAppend(&text, "; absent: ", absl::StrJoin(named, ", "));
  if (absent > named.size()) absl::StrAppend(&text, " and ", absent - named.size(), " more");
  const size_t unknown = round.size() - std::min(round.size(), round.arrived.size() + absent);
  if (unknown > 0) absl::StrAppend(&text, "; ", unknown, " never joined");
  return text;
}

int Barriers::Tick(MonotonicTime now, std::vector<BarrierReply>* replies) {
  int timed_out = 0;
  for (auto& [key, barrier] : barriers_) {
    for (auto it = barrier.rounds.begin(); it != barrier.rounds.end();) {
      const Round& round = it->second;
      if (now < round.deadline) {
        ++it;
        continue;
      }
      ReplyToAll(round.arrived,
                 {0,
                  absl::DeadlineExceededError(
                      absl::StrCat(Title(key.second, it->first), " timed out with ", AbsenceOf(round))),
                  {},
                  {}},
                 replies);
      it = barrier.rounds.erase(it);
      ++timed_out;
    }
  }
  return timed_out;
}

MonotonicTime Barriers::NextDeadline() const {
  MonotonicTime next = absl::InfiniteDuration();
  for (const auto& [key, barrier] : barriers_) {
    for (const auto& [generation, round] : barrier.rounds) next = std::min(next, round.deadline);
  }
  return next;
}

size_t Barriers::absentees() const {
  size_t lacking = 0;
  for (const auto& [key, barrier] : barriers_) {
    for (const auto& [generation, round] : barrier.rounds) lacking += round.size() - round.arrived.size();
  }
  return lacking;
}

}  // namespace skein
