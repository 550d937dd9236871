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
  if (arrival.generation == 0) return absl::InvalidArgumentError("barrier generations are counted from 1; got 0");
  if (arrival.timeout <= absl::ZeroDuration() || arrival.timeout > Barriers::kMaxTimeout) {
    return absl::InvalidArgumentError(absl::StrCat("a barrier's timeout must be above 0 and at most ",
                                                   absl::FormatDuration(Barriers::kMaxTimeout), "; got ",
                                                   absl::FormatDuration(arrival.timeout)));
  }
  return absl::OkStatus();
}

void ReplyToAll(const std::map<std::string, std::vector<WaiterId>>& arrived, const absl::Status& status,
                const std::vector<std::string>& members, std::vector<BarrierReply>* replies) {
  for (const auto& [id, waiters] : arrived) {
    for (WaiterId waiter : waiters) replies->push_back({waiter, status, members});
  }
}

}  // namespace

void Barriers::Arrive(const BarrierArrival& arrival, const std::set<std::string>& live, MonotonicTime now,
                      std::vector<BarrierReply>* replies) {
  if (absl::Status status = Check(arrival); !status.ok()) {
    replies->push_back({arrival.waiter, status, {}});
    return;
  }
  const Key key{arrival.role, arrival.name};
  if (barriers_.size() >= kMaxNames && barriers_.count(key) == 0) {
    replies->push_back(
        {arrival.waiter, absl::ResourceExhaustedError(absl::StrCat("more than ", kMaxNames, " barrier names")), {}});
    return;
  }
  Barrier& barrier = barriers_[key];
  if (arrival.generation <= barrier.opened_generation) {
    if (arrival.generation == barrier.opened_generation && barrier.may_repeat.count(arrival.member_id) > 0) {
      replies->push_back({arrival.waiter, absl::OkStatus(), barrier.opened_members});
    } else {
      replies->push_back({arrival.waiter, Passed(arrival.name, arrival.generation, barrier.opened_generation), {}});
    }
    return;
  }
  auto [it, is_first] = barrier.rounds.try_emplace(arrival.generation);
  Round& round = it->second;
  if (is_first) {
    round.participants = live;
    round.deadline = now + arrival.timeout;
  }
  round.participants.insert(arrival.member_id);
  round.arrived[arrival.member_id].push_back(arrival.waiter);
  OpenWhatIsComplete(arrival.name, &barrier, replies);
}

void Barriers::OpenWhatIsComplete(const std::string& name, Barrier* barrier, std::vector<BarrierReply>* replies) {
  auto& rounds = barrier->rounds;
  for (auto it = rounds.begin(); it != rounds.end();) {
    if (it->second.arrived.size() < it->second.participants.size()) {
      ++it;
      continue;
    }
    barrier->opened_generation = it->first;
    barrier->may_repeat = it->second.participants;
    barrier->opened_members.assign(barrier->may_repeat.begin(), barrier->may_repeat.end());
    for (auto lower = rounds.begin(); lower != it; ++lower) {
      ReplyToAll(lower->second.arrived, Passed(name, lower->first, it->first), {}, replies);
    }
    ReplyToAll(it->second.arrived, absl::OkStatus(), barrier->opened_members, replies);
    it = rounds.erase(rounds.begin(), std::next(it));
  }
}

void Barriers::Cancel(WaiterId waiter) {
  for (auto& [key, barrier] : barriers_) {
    for (auto round = barrier.rounds.begin(); round != barrier.rounds.end(); ++round) {
      auto& arrived = round->second.arrived;
      for (auto member = arrived.begin(); member != arrived.end(); ++member) {
        auto& waiters = member->second;
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

void Barriers::RemoveMembers(const std::set<std::string>& ids, std::vector<BarrierReply>* replies) {
  for (auto& [key, barrier] : barriers_) {
    for (const std::string& id : ids) barrier.may_repeat.erase(id);
    for (auto it = barrier.rounds.begin(); it != barrier.rounds.end();) {
      Round& round = it->second;
      for (const std::string& id : ids) {
        round.participants.erase(id);
        auto own = round.arrived.extract(id);
        if (own.empty()) continue;
        const absl::Status gone = absl::FailedPreconditionError(
            absl::StrCat(id, " is no longer a live member; it was waiting at ", Title(key.second, it->first)));
        for (WaiterId waiter : own.mapped()) replies->push_back({waiter, gone, {}});
      }
      it = round.arrived.empty() ? barrier.rounds.erase(it) : std::next(it);
    }
    OpenWhatIsComplete(key.second, &barrier, replies);
  }
}

void Barriers::ForgetRole(v1::Role role) {
  for (auto it = barriers_.begin(); it != barriers_.end();) {
    it = it->first.first == role && it->second.rounds.empty() ? barriers_.erase(it) : std::next(it);
  }
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
      std::vector<std::string> absent;
      for (const std::string& id : round.participants) {
        if (round.arrived.count(id) == 0) absent.push_back(id);
      }
      ReplyToAll(round.arrived,
                 absl::DeadlineExceededError(absl::StrCat(Title(key.second, it->first), " timed out with ",
                                                          round.arrived.size(), " of ", round.participants.size(),
                                                          " arrived; absent: ", absl::StrJoin(absent, ", "))),
                 {}, replies);
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

}  // namespace skein
