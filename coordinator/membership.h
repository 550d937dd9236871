// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/monotonic_time.h"
#include "skein/v1/coordinator_service.pb.h"

namespace skein {

// "learner" or "actor", as in member ids, metrics and messages.
const char* RoleName(v1::Role role);

std::string LearnerId(uint32_t rank);  // "learner-0"

struct Member {
  std::string id;           // "actor-1", "learner-0" (its rank).
  uint64_t generation = 0;  // Unique to this join; later joins have higher ones.
  v1::Role role = v1::ROLE_UNSPECIFIED;
  uint32_t rank = 0;     // Learners only.
  uint32_t ranks = 1;    // Learners only: how many there are, itself included.
  uint32_t runners = 0;  // Actors only.
  std::string host;      // For people.
  int64_t pid = 0;
  std::string data_address;     // Learners only.
  std::string metrics_address;  // Empty = none.
  std::string certificate;      // The digest of the one it joined with; empty = it came without TLS.
  MonotonicTime last_heartbeat;
  v1::MemberReport report;
  bool draining = false;                 // Was asked to leave.
  std::optional<uint32_t> last_learner;  // Draining: the rank it fed then, where it delivers what it has begun.
  std::optional<uint32_t> learner;       // Actors: the rank it feeds, as kept for a successor of the coordinator.
};

// The members of the run. A member lives until it leaves or has been silent for a whole lease.
// (id, generation) is never used twice: actor ids are never used again, a learner's id is its rank's.
// Pure: no clock, no I/O. Not thread-safe.
class Membership {
 public:
  // Generations start above `last_generation`, numbers in actors' ids above `last_actor`.
  Membership(absl::Duration lease, uint64_t last_generation, uint64_t last_actor = 0)
      : lease_(lease), last_generation_(last_generation), last_actor_(last_actor) {}

  // Gives `member` its id, generation and lease. REQUIRES: member.role is a learner's or an actor's.
  // AlreadyExists: a learner with that rank is alive. FailedPrecondition: a live learner has another number of ranks
  // (names both).
  absl::StatusOr<const Member*> Join(Member member, MonotonicTime now);

  // Takes back a member that a coordinator before had; no other has its id.
  void Restore(Member member);
  // Notes which rank an actor feeds: the actor if that is news, else nullptr. REQUIRES: it is a live member.
  const Member* SetLearner(const std::string& id, std::optional<uint32_t> learner);

  // The live member. NotFound: there was no such member. FailedPrecondition: `generation` is stale: that member's lease
  // has ended, it has left, or it has joined again since.
  absl::StatusOr<Member*> Find(const std::string& id, uint64_t generation);

  // A live member's calls come with the certificate that it joined with: an id and a generation prove nothing, others
  // can count. PermissionDenied: `certificate` is another one. OK if there is no such live member, or if it joined
  // without (there is no TLS, or its record is of a version that wrote none).
  absl::Status CheckCaller(const std::string& id, uint64_t generation, const std::string& certificate) const;

  // Asks an actor to leave; again changes nothing. `learner` is the rank it feeds, if there is one. NotFound: there is
  // no such live member (names those there are). FailedPrecondition: it is a learner.
  absl::Status Drain(const std::string& id, std::optional<uint32_t> learner);

  // Takes the member out. nullopt: not a live member under this generation.
  std::optional<Member> Remove(const std::string& id, uint64_t generation);

  // Takes out every member whose lease has ended.
  std::vector<Member> Expire(MonotonicTime now);

  // When the next lease ends if none is renewed.
  MonotonicTime NextExpiry() const;

  const Member* FindLearner(uint32_t rank) const;  // nullptr: it is not alive.
  std::set<std::string> IdsOf(v1::Role role) const;
  const std::map<std::string, Member>& members() const { return members_; }
  uint64_t last_actor() const { return last_actor_; }

 private:
  absl::Duration lease_;
  uint64_t last_generation_;
  uint64_t last_actor_;
  std::map<std::string, Member> members_;
};

}  // namespace skein
