// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/assignment.h"
#include "coordinator/barrier.h"
#include "coordinator/learner_watch.h"
#include "coordinator/membership.h"
#include "coordinator/message_bounds.h"
#include "coordinator/monotonic_time.h"
#include "coordinator/state_records.h"
#include "skein/v1/coordinator_service.pb.h"

// Decides for the control plane: membership by leases, assignment of actors, barriers, run status.
//   event, time -> CoordinatorState -> answer, Effects -> the services, which carry them out
namespace skein {

struct MembershipChange {
  enum Kind { kJoined, kLeft, kExpired };
  Kind kind = kJoined;
  Member member;
};

// Effects of an event, for the caller to carry out.
struct Effects {
  std::vector<BarrierReply> replies;      // Blocked calls to end now.
  std::vector<MembershipChange> changes;  // In order, for logs and metrics.
  std::vector<Assignment::Move> moves;    // Actors that got another learner.
  int barriers_timed_out = 0;
  // Records to store for a successor. Store them before sending the replies, since the replies must hold after a
  // restart.
  std::vector<StateChange> records;
  // Set once: a member of an earlier coordinator has called, and this coordinator has no state of that one.
  bool state_was_lost = false;
};

// The control plane as a deterministic state machine: (state, event, now) -> (state, answer, effects).
// Every event first handles what was due by `now` (leases, barrier deadlines), so the result does not depend on how
// promptly Tick() is called. `now` never decreases. No clock, no I/O, no locks. Not thread-safe.
class CoordinatorState {
 public:
  struct Options {
    std::string run_id;
    std::string run_directory;  // Only shown.
    v1::RunConfig config;       // Defaults applied.
    // Milliseconds of the wall clock at the start. Generations start above start_epoch << 10, so that those of a
    // restarted coordinator are higher than all earlier ones.
    uint64_t start_epoch = 0;
    // State that an earlier coordinator of the same run stored. Its members stay members, with a full lease from now.
    std::optional<SavedState> saved;
    bool new_session = false;          // No calls are expected from an earlier coordinator's members.
    size_t most_actors = kMostActors;  // Limit of live actors; more are refused.
  };
  explicit CoordinatorState(Options options);

  // The record from which a successor takes its epoch; store it before the first event.
  StateChange RunChange() const;

  // Adds a member. Addresses must be complete; `certificate` is the caller's (Membership::CheckCaller).
  // FailedPrecondition: protocol major, run id or number of ranks differs (names both). AlreadyExists: a learner with
  // that rank is alive. InvalidArgument: no role, a learner without data_address, or a rank out of range.
  // ResourceExhausted: the number of actors is at its limit. REQUIRES, as for all requests: CheckBounds(request) is ok.
  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request, MonotonicTime now, Effects* effects,
                                        const std::string& certificate = "");

  // Call before each of the calls below that a member makes. As Membership::CheckCaller().
  absl::Status CheckCaller(const std::string& member_id, uint64_t generation, const std::string& certificate) const {
    return membership_.CheckCaller(member_id, generation, certificate);
  }

  // NotFound: not a member. FailedPrecondition: stale generation.
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request, MonotonicTime now,
                                                  Effects* effects);

  // No effect if the caller is not (or no longer) a member.
  void Leave(const v1::LeaveRequest& request, MonotonicTime now, Effects* effects);

  // Asks an actor to finish its work and leave. The request is repeated in each heartbeat reply. Until it leaves, the
  // actor keeps its learner; it no longer counts when actors are assigned. NotFound: no such live member.
  // FailedPrecondition: the member is a learner.
  absl::Status Drain(const std::string& member_id, MonotonicTime now, Effects* effects);

  // The reply to `waiter` is among the effects of this or a later event. Codes as in Barriers, and FailedPrecondition:
  // the caller is not a live member.
  void Arrive(WaiterId waiter, const v1::BarrierRequest& request, MonotonicTime now, Effects* effects);
  void CancelWaiter(WaiterId waiter) { barriers_.Cancel(waiter); }

  // Handles what is due by `now`.
  void Tick(MonotonicTime now, Effects* effects);

  // Tick() has nothing to do before this time. May be earlier than necessary; constant time.
  MonotonicTime NextDeadline() const { return next_deadline_; }

  v1::StatusResponse Status(MonotonicTime now) const;
  size_t barrier_absentees() const { return barriers_.absentees(); }

 private:
  void Restore(const SavedState& saved);
  // Adds records of what this event has changed: actors' learners, barriers and progress.
  void AddRecords(Effects* effects);
  void RecordMember(const std::string& id, Effects* effects) const;
  void Depart(const std::vector<Member>& members, MembershipChange::Kind kind, Effects* effects);
  void TakeReports(Member* member, const v1::MemberReport* report, const v1::RunProgress* progress, MonotonicTime now);
  void NoteError(const Member& member, const std::string& before, const std::string& now);
  bool Counts(const Member& member) const;
  bool Leads(const Member& member) const;
  bool TakesOver(const Member& member, const v1::RunProgress& progress) const;
  // `state`: of the run, until another learner leads.
  void LoseLearner(v1::RunState state);
  // Says so in the status where the learner that leads hangs.
  void ShowHanging(MonotonicTime now, v1::StatusResponse* status) const;
  void UpdateAssignment(Effects* effects);
  void ServeStarving(MonotonicTime now, Effects* effects);
  const Member* LearnerOf(const std::string& actor) const;  // nullptr: there is none.
  std::string LearnerAddressOf(const std::string& actor) const;

  const Options options_;
  const absl::Duration lease_;
  const bool has_predecessor_;  // True: its state was restored.
  Membership membership_;
  Assignment assignment_;
  Barriers barriers_;
  MonotonicTime next_deadline_ = absl::InfiniteDuration();

  LearnerWatch watch_;             // Of the leader.
  std::string leader_;             // The learner that last reported progress, if live.
  v1::RunProgress progress_;       // As it reported; its state is the run's state.
  std::string last_error_;         // First since a learner joined; learners' errors take precedence.
  bool progress_changed_ = false;  // Or last_error_ has, since AddRecords().
  bool lost_state_noticed_ = false;
  uint64_t joins_ = 0;
  uint64_t leaves_ = 0;
  uint64_t expirations_ = 0;
  uint64_t actor_moves_ = 0;
};

}  // namespace skein
