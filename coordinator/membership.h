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

// The members of a run and their leases.
namespace skein {

// "learner" or "actor", as in member ids, metrics and messages.
const char* RoleName(v1::Role role);

std::string LearnerId(uint32_t rank);  // "learner-0"

struct Member {
  std::string id;           // "actor-1", "learner-0" (its rank).
  uint64_t generation = 0;  // Unique to this join; later joins have higher ones.
  v1::Role role = v1::ROLE_UNSPECIFIED;
  uint32_t rank = 0;     // Learners only.
  uint32_t ranks = 1;    // Learners only: number of learner ranks, itself included.
  uint32_t runners = 0;  // Actors only.
  std::string host;      // Shown to users.
  int64_t pid = 0;
  std::string data_address;     // Learners only.
  std::string metrics_address;  // Empty = none.
  std::string certificate;      // Digest of the one it joined with; empty = no TLS.
  MonotonicTime last_heartbeat;
  v1::MemberReport report;
  bool draining = false;                 // Was asked to leave.
  std::optional<uint32_t> last_learner;  // Draining: rank it fed; it delivers unfinished work there.
  std::optional<uint32_t> learner;       // Actors: rank it feeds; stored for a successor coordinator.
};

// The members of the run. A member is live until it leaves or has been silent for a full lease. A pair (id, generation)
// is never used twice: actor ids are never reused; a learner's id is that of its rank.
// Pure: no clock, no I/O. Not thread-safe.
class Membership {
 public:
  // Generations start above `last_generation`, the numbers of actor ids above `last_actor`.
  Membership(absl::Duration lease, uint64_t last_generation, uint64_t last_actor = 0)
      : lease_(lease), last_generation_(last_generation), last_actor_(last_actor) {}

  // Gives `member` its id, generation and lease. REQUIRES: member.role is learner or actor. AlreadyExists: a learner
  // with that rank is alive. FailedPrecondition: a live learner has another number of ranks (names both).
  absl::StatusOr<const Member*> Join(Member member, MonotonicTime now);

  // Restores a member of an earlier coordinator. REQUIRES: no other member has its id.
  void Restore(Member member);
  // Sets which rank an actor feeds. Returns the actor if that is a change, else nullptr. REQUIRES: it is a live member.
  const Member* SetLearner(const std::string& id, std::optional<uint32_t> learner);

  // Returns the live member. NotFound: there never was such a member. FailedPrecondition: `generation` is stale: that
  // member's lease has ended, it has left, or it has joined again since.
  absl::StatusOr<Member*> Find(const std::string& id, uint64_t generation);

  // Checks that a live member's call has the certificate with which the member joined; id and generation alone prove
  // nothing, since they can be guessed. PermissionDenied: `certificate` is another one. OK if there is no such live
  // member, or if it joined without a certificate (no TLS, or an older record that has none).
  absl::Status CheckCaller(const std::string& id, uint64_t generation, const std::string& certificate) const;

  // Marks an actor as asked to leave; idempotent. `learner` is the rank it feeds, if any. NotFound: no such live member
  // (names the live ones). FailedPrecondition: it is a learner.
  absl::Status Drain(const std::string& id, std::optional<uint32_t> learner);

  // Removes the member. nullopt: not a live member with this generation.
  std::optional<Member> Remove(const std::string& id, uint64_t generation);

  // Removes every member whose lease has ended.
  std::vector<Member> Expire(MonotonicTime now);

  // When the next lease ends unless it is renewed.
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
