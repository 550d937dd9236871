// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/telemetry/printable.h"

namespace skein {

const char* RoleName(v1::Role role) {
  switch (role) {
    case v1::ROLE_LEARNER:
      return "learner";
    case v1::ROLE_ACTOR:
      return "actor";
    default:
      return "unspecified";
  }
}

namespace {

constexpr size_t kMostIdsNamed = 20;

std::string NameActors(const std::set<std::string>& ids) {
  if (ids.empty()) return "the run has no actors now";
  const auto end = std::next(ids.begin(), static_cast<std::ptrdiff_t>(std::min(ids.size(), kMostIdsNamed)));
  const std::string more = ids.size() > kMostIdsNamed ? absl::StrCat(" and ", ids.size() - kMostIdsNamed, " more") : "";
  return absl::StrCat("the run's actors are ", absl::StrJoin(ids.begin(), end, ", "), more);
}

}  // namespace

std::string LearnerId(uint32_t rank) { return absl::StrCat("learner-", rank); }

absl::StatusOr<const Member*> Membership::Join(Member member, MonotonicTime now) {
  if (member.role == v1::ROLE_LEARNER) {
    for (const auto& [id, other] : members_) {
      if (other.role != v1::ROLE_LEARNER || other.ranks == member.ranks) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "rank ", member.rank, " was started as one of ", member.ranks, " learners, ", id, " on ", other.host,
          ", pid ", other.pid, ", as one of ", other.ranks,
          "; start all ranks with the same number (--learners, WORLD_SIZE or SLURM_NTASKS); another number of ranks ",
          "is accepted once those that run have ended"));
    }
    if (const Member* alive = FindLearner(member.rank); alive != nullptr) {
      return absl::AlreadyExistsError(absl::StrCat("learner rank ", member.rank, " is alive already: ", alive->id,
                                                   " on ", alive->host, ", pid ", alive->pid));
    }
    member.id = LearnerId(member.rank);
  } else {
    member.id = absl::StrCat("actor-", ++last_actor_);
  }
  member.generation = ++last_generation_;
  member.last_heartbeat = now;
  std::string id = member.id;
  return &members_.emplace(std::move(id), std::move(member)).first->second;
}

void Membership::Restore(Member member) {
  std::string id = member.id;
  members_.emplace(std::move(id), std::move(member));
}

const Member* Membership::SetLearner(const std::string& id, std::optional<uint32_t> learner) {
  Member& member = members_.at(id);
  if (member.learner == learner) return nullptr;
  member.learner = learner;
  return &member;
}

absl::StatusOr<Member*> Membership::Find(const std::string& id, uint64_t generation) {
  auto found = members_.find(id);
  if (found == members_.end() && generation > 0 && generation <= last_generation_) {
    return absl::FailedPreconditionError(
        absl::StrCat("\"", Excerpt(id), "\" is no longer a member: generation ", generation, " is stale; join again"));
  }
  if (found == members_.end()) {
    return absl::NotFoundError(absl::StrCat("\"", Excerpt(id), "\" is not a member of this run; join again"));
  }
  if (found->second.generation != generation) {
    return absl::FailedPreconditionError(
        absl::StrCat(id, " has generation ", found->second.generation, ", not ", generation, "; join again"));
  }
  return &found->second;
}

absl::Status Membership::CheckCaller(const std::string& id, uint64_t generation, const std::string& certificate) const {
  const auto found = members_.find(id);
  if (found == members_.end() || found->second.generation != generation) return absl::OkStatus();
  const std::string& joined_with = found->second.certificate;
  if (joined_with.empty() || joined_with == certificate) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      id, " joined with another certificate than this call's: a member keeps the one that it started with"));
}

absl::Status Membership::Drain(const std::string& id, std::optional<uint32_t> learner) {
  auto found = members_.find(id);
  if (found == members_.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no member \"", Excerpt(id), "\"; ", NameActors(IdsOf(v1::ROLE_ACTOR))));
  }
  Member& member = found->second;
  if (member.role != v1::ROLE_ACTOR) {
    return absl::FailedPreconditionError(absl::StrCat(
        id, " is a learner, and only actors can be drained; a learner stops with SIGTERM, after a checkpoint"));
  }
  if (!std::exchange(member.draining, true)) member.last_learner = learner;
  return absl::OkStatus();
}

std::optional<Member> Membership::Remove(const std::string& id, uint64_t generation) {
  auto found = members_.find(id);
  if (found == members_.end() || found->second.generation != generation) return std::nullopt;
  std::optional<Member> removed = std::move(found->second);
  members_.erase(found);
  return removed;
}

std::vector<Member> Membership::Expire(MonotonicTime now) {
  std::vector<Member> expired;
  for (auto it = members_.begin(); it != members_.end();) {
    if (it->second.last_heartbeat + lease_ <= now) {
      expired.push_back(std::move(it->second));
      it = members_.erase(it);
    } else {
      ++it;
    }
  }
  return expired;
}

MonotonicTime Membership::NextExpiry() const {
  MonotonicTime next = absl::InfiniteDuration();
  for (const auto& [id, member] : members_) next = std::min(next, member.last_heartbeat + lease_);
  return next;
}

const Member* Membership::FindLearner(uint32_t rank) const {
  auto found = members_.find(LearnerId(rank));
  return found == members_.end() ? nullptr : &found->second;
}

std::set<std::string> Membership::IdsOf(v1::Role role) const {
  std::set<std::string> ids;
  for (const auto& [id, member] : members_) {
    if (member.role == role) ids.insert(id);
  }
  return ids;
}

}  // namespace skein
