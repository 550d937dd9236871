// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/assignment.h"
#include "coordinator/barrier.h"
#include "coordinator/membership.h"
#include "coordinator/message_bounds.h"
#include "coordinator/monotonic_time.h"
#include "coordinator/state_records.h"
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
  // To be kept for a successor; before the replies are given, as what they say must still be so after a restart.
  std::vector<StateChange> records;
  // Once: a member of a coordinator before this one has called, and this one knows nothing of that coordinator's state.
  bool state_was_lost = false;
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
    // What a coordinator before this one kept of the same run: its members live on, with a whole lease from now.
    std::optional<SavedState> saved;
    bool new_session = false;          // Members of a coordinator before are not expected to call.
    size_t most_actors = kMostActors;  // Live ones; others are refused.
  };
  explicit CoordinatorState(Options options);

  // The record that a successor takes its epoch from; to be kept before the first event.
  StateChange RunChange() const;

  // Addresses are complete already; `certificate` is the caller's (Membership::CheckCaller). FailedPrecondition:
  // protocol major, run id or number of ranks differs (names both). AlreadyExists: a learner with that rank is alive.
  // InvalidArgument: no role, a learner without data_address or with a rank that there is not. ResourceExhausted: an
  // actor, and there are as many as there can be. REQUIRES, as of all requests: CheckBounds(request).
  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request, MonotonicTime now, Effects* effects,
                                        const std::string& certificate = "");

  // To be asked before each of the calls below that a member makes. As Membership::CheckCaller().
  absl::Status CheckCaller(const std::string& member_id, uint64_t generation, const std::string& certificate) const {
    return membership_.CheckCaller(member_id, generation, certificate);
  }

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
  void Restore(const SavedState& saved);
  // Adds what this event has changed of members' learners, barriers and progress.
  void AddRecords(Effects* effects);
  void RecordMember(const std::string& id, Effects* effects) const;
  void Depart(const std::vector<Member>& members, MembershipChange::Kind kind, Effects* effects);
  void TakeReports(Member* member, const v1::MemberReport* report, const v1::RunProgress* progress);
  void NoteError(const Member& member, const std::string& before, const std::string& now);
  bool Counts(const Member& member) const;
  bool Leads(const Member& member) const;
  bool TakesOver(const Member& member, const v1::RunProgress& progress) const;
  void LoseLearner();
  void UpdateAssignment(Effects* effects);
  void ServeStarving(MonotonicTime now, Effects* effects);
  const Member* LearnerOf(const std::string& actor) const;  // nullptr: there is none.
  std::string LearnerAddressOf(const std::string& actor) const;

  const Options options_;
  const absl::Duration lease_;
  const bool has_predecessor_;  // And knows what it knew.
  Membership membership_;
  Assignment assignment_;
  Barriers barriers_;
  MonotonicTime next_deadline_ = absl::InfiniteDuration();

  std::string leader_;             // The learner that told progress last, if it is live.
  v1::RunProgress progress_;       // As it told; its state is the run's.
  std::string last_error_;         // The first since a learner joined; of learners, if one of them has had any.
  bool progress_changed_ = false;  // Or last_error_, since AddRecords().
  bool lost_state_noticed_ = false;
  uint64_t joins_ = 0;
  uint64_t leaves_ = 0;
  uint64_t expirations_ = 0;
  uint64_t actor_moves_ = 0;
};

}  // namespace skein
