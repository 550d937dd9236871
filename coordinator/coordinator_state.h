// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/assignment.h"
#include "coordinator/barrier.h"
#include "coordinator/membership.h"
#include "coordinator/monotonic_time.h"
#include "skein/v1/coordinator_service.pb.h"

namespace skein {

struct MembershipChange {
  enum Kind { kJoined, kLeft, kExpired };
  Kind kind = kJoined;
  Member member;
};

// What an event asks of the outside world.
struct Effects {
  std::vector<BarrierReply> replies;      // Blocked calls to finish now.
  std::vector<MembershipChange> changes;  // In their order, for logs and metrics.
  std::vector<Assignment::Move> moves;    // Actors that got another learner.
  int barriers_timed_out = 0;
};

// The whole control plane as a deterministic state machine: (state, event, now) -> (state, answer, effects).
// Every event first does what was due by `now` (leases, barrier deadlines), so the outcome does not depend on how
// promptly Tick() is called. `now` never goes back. No clock, no I/O, no locks. Not thread-safe.
class CoordinatorState {
 public:
  struct Options {
    std::string run_id;
    std::string run_directory;  // Only shown.
    v1::RunConfig config;       // Defaults applied.
    // Milliseconds of the wall clock at the start. Generations count from start_epoch << 10, so that those of a
    // restarted coordinator are higher than any of the one before.
    uint64_t start_epoch = 0;
  };
  explicit CoordinatorState(Options options);

  // Addresses are complete already. FailedPrecondition: protocol major, run id or number of ranks differs (names both).
  // AlreadyExists: a learner with that rank is alive. InvalidArgument: no role, a learner without data_address or with
  // a rank that there is not.
  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request, MonotonicTime now, Effects* effects);

  // NotFound: not a member. FailedPrecondition: stale generation.
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request, MonotonicTime now,
                                                  Effects* effects);

  // A caller that is no member (any more) changes nothing.
  void Leave(const v1::LeaveRequest& request, MonotonicTime now, Effects* effects);

  // Asks an actor to finish what it has begun and leave: it hears so with each heartbeat, keeps its learner until then,
  // and counts no longer when actors are shared out. NotFound: no such live member. FailedPrecondition: a learner.
  absl::Status Drain(const std::string& member_id, MonotonicTime now, Effects* effects);

  // The reply to `waiter` is among the effects of this or a later event; codes as in Barriers, and
  // FailedPrecondition: not a live member.
  void Arrive(WaiterId waiter, const v1::BarrierRequest& request, MonotonicTime now, Effects* effects);
  void CancelWaiter(WaiterId waiter) { barriers_.Cancel(waiter); }

  // Does what is due.
  void Tick(MonotonicTime now, Effects* effects);

  // Tick() has nothing to do before this moment. May be earlier than necessary; constant time.
  MonotonicTime NextDeadline() const { return next_deadline_; }

  v1::StatusResponse Status(MonotonicTime now) const;
  size_t barrier_absentees() const { return barriers_.absentees(); }

 private:
  void Depart(const std::vector<Member>& members, MembershipChange::Kind kind, Effects* effects);
  void TakeReports(Member* member, const v1::MemberReport* report, const v1::RunProgress* progress);
  void NoteError(const std::string& member_id, const std::string& before, const std::string& now);
  void LoseLearner();
  void UpdateAssignment(Effects* effects);
  void ServeStarving(MonotonicTime now, Effects* effects);
  const Member* LearnerOf(const std::string& actor) const;  // nullptr: there is none.
  std::string LearnerAddressOf(const std::string& actor) const;

  const Options options_;
  const absl::Duration lease_;
  Membership membership_;
  Assignment assignment_;
  Barriers barriers_;
  MonotonicTime next_deadline_ = absl::InfiniteDuration();

  v1::RunProgress progress_;  // As last reported by learner rank 0; its state is the run's.
  std::string last_error_;    // The first since a learner joined.
  uint64_t joins_ = 0;
  uint64_t leaves_ = 0;
  uint64_t expirations_ = 0;
  uint64_t actor_moves_ = 0;
};

}  // namespace skein
