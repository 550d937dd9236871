// SPDX-License-Identifier: Apache-2.0
#include "coordinator/coordinator_state.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/join_request.h"

namespace skein {
namespace {

bool IsFinal(v1::RunState state) {
  return state == v1::RUN_STATE_FINISHED || state == v1::RUN_STATE_STOPPED || state == v1::RUN_STATE_FAILED;
}

// A learner that shows no work for so many leases (2 min by default) hangs.
constexpr int kPatienceLeases = 24;

v1::MemberStatus StatusOf(const Member& member, MonotonicTime now, absl::Duration lease) {
  v1::MemberStatus status;
  status.set_member_id(member.id);
  status.set_role(RoleName(member.role));
  status.set_generation(member.generation);
  status.set_host(member.host);
  status.set_pid(member.pid);
  status.set_metrics_address(member.metrics_address);
  status.set_seconds_since_heartbeat(absl::ToDoubleSeconds(now - member.last_heartbeat));
  status.set_runners(member.runners);
  status.set_rank(member.rank);
  status.set_draining(member.draining);
  *status.mutable_report() = member.report;
  status.set_degraded(member.role == v1::ROLE_ACTOR &&
                      member.report.undelivered_seconds() > absl::ToDoubleSeconds(lease));
  return status;
}

}  // namespace

CoordinatorState::CoordinatorState(Options options)
    : options_(std::move(options)),
      lease_(absl::Seconds(options_.config.coordinator().lease_seconds())),
      has_predecessor_(options_.saved.has_value()),
      membership_(lease_, options_.start_epoch << 10, has_predecessor_ ? options_.saved->run.last_actor() : 0),
      watch_(kPatienceLeases * lease_) {
  progress_.set_state(v1::RUN_STATE_STARTING);
  progress_.set_target_env_steps(options_.config.total_steps());
  progress_.set_mean_episode_return(std::numeric_limits<double>::quiet_NaN());
  progress_.set_eta_seconds(-1);
  if (has_predecessor_) Restore(*options_.saved);
}

void CoordinatorState::Restore(const SavedState& saved) {
  if (saved.progress) {
    progress_ = saved.progress->progress();
    last_error_ = saved.progress->last_error();
  }
  for (const store::MemberRecord& record : saved.members) {
    Member member = MemberOf(record, absl::ZeroDuration());
    if (member.learner && !member.draining) assignment_.Restore(member.id, member.runners, *member.learner);
    membership_.Restore(std::move(member));
  }
  for (const store::BarrierRecord& record : saved.barriers) barriers_.Restore(record);
  if (saved.progress && membership_.members().count(saved.progress->leader()) > 0) {
    leader_ = saved.progress->leader();
  } else if (membership_.FindLearner(0) == nullptr) {
    LoseLearner(progress_.state() == v1::RUN_STATE_BLOCKED ? v1::RUN_STATE_BLOCKED : v1::RUN_STATE_STARTING);
  }
  Effects nobody_was_told;
  UpdateAssignment(&nobody_was_told);
  progress_changed_ = false;
  next_deadline_ = membership_.NextExpiry();
}

StateChange CoordinatorState::RunChange() const {
  store::RunRecord run;
  run.set_run_id(options_.run_id);
  run.set_config_checksum(ChecksumOf(options_.config));
  run.set_epoch(options_.start_epoch);
  run.set_last_actor(membership_.last_actor());
  return PutRun(run);
}

void CoordinatorState::RecordMember(const std::string& id, Effects* effects) const {
  effects->records.push_back(PutMember(membership_.members().at(id)));
}

void CoordinatorState::AddRecords(Effects* effects) {
  for (const store::BarrierRecord& barrier : barriers_.TakeChanged()) {
    effects->records.push_back(barrier.opened_generation() > 0 ? PutBarrier(barrier)
                                                               : RemoveBarrier(barrier.role(), barrier.name()));
  }
  if (!std::exchange(progress_changed_, false)) return;
  store::ProgressRecord progress;
  *progress.mutable_progress() = progress_;
  progress.set_last_error(last_error_);
  progress.set_leader(leader_);
  effects->records.push_back(PutProgress(progress));
}

absl::StatusOr<v1::JoinResponse> CoordinatorState::Join(const v1::JoinRequest& request, MonotonicTime now,
                                                        Effects* effects, const std::string& certificate) {
  Tick(now, effects);
  if (absl::Status status = CheckJoin(request, options_.run_id); !status.ok()) return status;
  if (request.role() == v1::ROLE_ACTOR && membership_.IdsOf(v1::ROLE_ACTOR).size() >= options_.most_actors) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the run has ", options_.most_actors, " actors, and can have no more; stop some (skein drain), or ", "wait ",
        absl::FormatDuration(lease_), " if they have been killed, until their leases have ended"));
  }
  Member asked = MemberOf(request);
  asked.certificate = certificate;
  absl::StatusOr<const Member*> joined = membership_.Join(std::move(asked), now);
  if (!joined.ok()) return joined.status();
  const Member& member = **joined;
  ++joins_;
  effects->changes.push_back({MembershipChange::kJoined, member});
  next_deadline_ = std::min(next_deadline_, now + lease_);
  progress_changed_ = progress_changed_ || member.role == v1::ROLE_LEARNER;
  if (member.role == v1::ROLE_LEARNER) last_error_.clear();
  if (leader_.empty() && Leads(member)) {
    progress_.set_state(v1::RUN_STATE_STARTING);
    progress_.clear_last_error();
  }
  // A restarted rank counts its barrier generations from 1, and so do the ranks that restart with it.
  if (member.role == v1::ROLE_LEARNER) barriers_.ForgetRole(v1::ROLE_LEARNER);
  barriers_.AddMember(member.role, member.id);
  RecordMember(member.id, effects);
  if (member.role == v1::ROLE_ACTOR) effects->records.push_back(RunChange());
  UpdateAssignment(effects);
  AddRecords(effects);

  v1::JoinResponse response;
  response.set_member_id(member.id);
  response.set_generation(member.generation);
  response.set_run_id(options_.run_id);
  *response.mutable_config() = options_.config;
  response.set_lease_seconds(options_.config.coordinator().lease_seconds());
  response.set_heartbeat_seconds(options_.config.coordinator().heartbeat_seconds());
  response.set_learner_address(LearnerAddressOf(member.id));
  return response;
}

absl::StatusOr<v1::HeartbeatResponse> CoordinatorState::Heartbeat(const v1::HeartbeatRequest& request,
                                                                  MonotonicTime now, Effects* effects) {
  Tick(now, effects);
  absl::StatusOr<Member*> member = membership_.Find(request.member_id(), request.generation());
  if (!member.ok()) {
    const bool of_another = request.generation() > 0 && request.generation() <= options_.start_epoch << 10;
    if (of_another && !has_predecessor_ && !options_.new_session) {
      effects->state_was_lost = !std::exchange(lost_state_noticed_, true);
    }
    return member.status();
  }
  (*member)->last_heartbeat = now;
  TakeReports(*member, request.has_report() ? &request.report() : nullptr,
              request.has_progress() ? &request.progress() : nullptr, now);
  if ((*member)->role == v1::ROLE_LEARNER) ServeStarving(now, effects);
  AddRecords(effects);
  v1::HeartbeatResponse response;
  response.set_run_state(progress_.state());
  response.set_learner_address(LearnerAddressOf(request.member_id()));
  response.set_drain((*member)->draining);
  return response;
}

absl::Status CoordinatorState::Drain(const std::string& member_id, MonotonicTime now, Effects* effects) {
  Tick(now, effects);
  if (absl::Status status = membership_.Drain(member_id, assignment_.RankOf(member_id)); !status.ok()) return status;
  RecordMember(member_id, effects);
  UpdateAssignment(effects);
  AddRecords(effects);
  return absl::OkStatus();
}

void CoordinatorState::Leave(const v1::LeaveRequest& request, MonotonicTime now, Effects* effects) {
  Tick(now, effects);
  std::optional<Member> member = membership_.Remove(request.member_id(), request.generation());
  if (!member) return;
  TakeReports(&*member, request.has_report() ? &request.report() : nullptr,
              request.has_progress() ? &request.progress() : nullptr, now);
  ++leaves_;
  Depart({*member}, MembershipChange::kLeft, effects);
  AddRecords(effects);
}

void CoordinatorState::Arrive(WaiterId waiter, const v1::BarrierRequest& request, MonotonicTime now, Effects* effects) {
  Tick(now, effects);
  absl::StatusOr<Member*> member = membership_.Find(request.member_id(), request.member_generation());
  if (!member.ok()) {
    effects->replies.push_back({waiter, absl::FailedPreconditionError(member.status().message()), {}, {}});
    return;
  }
  const double seconds = request.timeout_seconds() == 0 ? options_.config.coordinator().barrier_timeout_seconds()
                                                        : request.timeout_seconds();
  const v1::Role role = (*member)->role;
  // absl::Seconds(NaN) is not usable; a negative duration is refused as NaN should be.
  const absl::Duration timeout = seconds == seconds ? absl::Seconds(seconds) : -absl::InfiniteDuration();
  barriers_.Arrive({waiter, role, request.member_id(), request.name(), request.barrier_generation(), timeout,
                    request.participants(), request.payload()},
                   membership_.IdsOf(role), now, &effects->replies);
  next_deadline_ = std::min(next_deadline_, barriers_.NextDeadline());
  AddRecords(effects);
}

void CoordinatorState::Tick(MonotonicTime now, Effects* effects) {
  if (now < next_deadline_) return;
  std::vector<Member> expired = membership_.Expire(now);
  for (const Member& member : expired) {
    ++expirations_;
    if (member.role == v1::ROLE_LEARNER && Counts(member) && !IsFinal(progress_.state())) {
      last_error_ = absl::StrCat(member.id, " on ", member.host, " (pid ", member.pid, ") was silent for ",
                                 absl::FormatDuration(lease_), ": its lease has ended");
      progress_changed_ = true;
    }
  }
  Depart(expired, MembershipChange::kExpired, effects);
  effects->barriers_timed_out += barriers_.Tick(now, &effects->replies);
  next_deadline_ = std::min(membership_.NextExpiry(), barriers_.NextDeadline());
  AddRecords(effects);
}

// Of members that membership_ has taken out already.
void CoordinatorState::Depart(const std::vector<Member>& members, MembershipChange::Kind kind, Effects* effects) {
  if (members.empty()) return;
  std::set<std::string> ids;
  for (const Member& member : members) {
    ids.insert(member.id);
    effects->changes.push_back({kind, member});
    effects->records.push_back(skein::RemoveMember(member.id));
    // One that fell silent is dead, stopped or cut off: nobody may be starting another.
    if (Leads(member)) {
      LoseLearner(kind == MembershipChange::kExpired ? v1::RUN_STATE_BLOCKED : v1::RUN_STATE_STARTING);
    }
  }
  barriers_.RemoveMembers(ids, &effects->replies);
  for (v1::Role role : {v1::ROLE_LEARNER, v1::ROLE_ACTOR}) {
    if (membership_.IdsOf(role).empty()) barriers_.ForgetRole(role);
  }
  UpdateAssignment(effects);
}

// Rank 0 leads unless another rank has taken over.
bool CoordinatorState::Leads(const Member& member) const {
  if (member.role != v1::ROLE_LEARNER) return false;
  return leader_.empty() ? member.rank == 0 : member.id == leader_;
}

// One of several ranks leads. Another one takes over when the leader is gone, or when it reports more steps: a rank
// that was silent for long may still act as leader.
bool CoordinatorState::TakesOver(const Member& member, const v1::RunProgress& progress) const {
  if (Leads(member)) return true;
  if (member.role != v1::ROLE_LEARNER) return false;
  const bool nobody_leads = leader_.empty() && membership_.FindLearner(0) == nullptr;
  return nobody_leads || progress.env_steps() > progress_.env_steps();
}

void CoordinatorState::LoseLearner(v1::RunState state) {
  leader_.clear();
  progress_changed_ = true;
  if (!IsFinal(progress_.state())) progress_.set_state(state);
  progress_.set_env_steps_per_second_10s(0);
  progress_.set_env_steps_per_second_60s(0);
  progress_.set_env_steps_per_second_300s(0);
  progress_.set_eta_seconds(-1);
}

void CoordinatorState::TakeReports(Member* member, const v1::MemberReport* report, const v1::RunProgress* progress,
                                   MonotonicTime now) {
  if (report != nullptr) {
    v1::MemberReport kept = Bounded(*report, member->role);
    NoteError(*member, member->report.last_error(), kept.last_error());
    member->report = std::move(kept);
  }
  if (progress != nullptr && TakesOver(*member, *progress)) {
    if (leader_ != member->id) watch_.Begin(now);
    leader_ = member->id;
    v1::RunProgress kept = Bounded(*progress);
    watch_.Observe(kept, now);
    NoteError(*member, progress_.last_error(), kept.last_error());
    const v1::RunState before = progress_.state();
    progress_changed_ = true;
    progress_ = std::move(kept);
    if (progress_.state() == v1::RUN_STATE_UNSPECIFIED) progress_.set_state(before);
  }
}

// A member repeats its last error in every report: only a new one counts.
void CoordinatorState::NoteError(const Member& member, const std::string& before, const std::string& now) {
  if (now.empty() || now == before || !Counts(member)) return;
  last_error_ = absl::StrCat(member.id, ": ", now);
  progress_changed_ = true;
}

// Whether an error of this member replaces the run's: there was none, or only actors had one and this is a learner.
// Errors begin with the id of their member.
bool CoordinatorState::Counts(const Member& member) const {
  if (last_error_.empty()) return true;
  return member.role == v1::ROLE_LEARNER && !absl::StartsWith(last_error_, RoleName(v1::ROLE_LEARNER));
}

void CoordinatorState::UpdateAssignment(Effects* effects) {
  std::set<uint32_t> ranks;
  std::map<std::string, uint32_t> actors;
  for (const auto& [id, member] : membership_.members()) {
    if (member.role == v1::ROLE_LEARNER) {
      ranks.insert(member.rank);
    } else if (!member.draining) {
      actors[id] = member.runners;
    }
  }
  const std::vector<Assignment::Move> moves = assignment_.Update(ranks, actors);
  actor_moves_ += moves.size();
  effects->moves.insert(effects->moves.end(), moves.begin(), moves.end());
  for (const auto& [id, runners] : actors) {
    if (const Member* member = membership_.SetLearner(id, assignment_.RankOf(id)); member != nullptr) {
      effects->records.push_back(PutMember(*member));
    }
  }
}

void CoordinatorState::ServeStarving(MonotonicTime now, Effects* effects) {
  std::map<uint32_t, double> waiting;
  for (const auto& [id, member] : membership_.members()) {
    if (member.role == v1::ROLE_LEARNER) waiting[member.rank] = member.report.starving_seconds();
  }
  const std::optional<Assignment::Move> move = assignment_.ServeStarving(waiting, now);
  if (!move) return;
  ++actor_moves_;
  effects->moves.push_back(*move);
  if (const Member* member = membership_.SetLearner(move->actor, move->to); member != nullptr) {
    effects->records.push_back(PutMember(*member));
  }
}

const Member* CoordinatorState::LearnerOf(const std::string& actor) const {
  const auto found = membership_.members().find(actor);
  const bool draining = found != membership_.members().end() && found->second.draining;
  const std::optional<uint32_t> rank = draining ? found->second.last_learner : assignment_.RankOf(actor);
  return rank ? membership_.FindLearner(*rank) : nullptr;
}

std::string CoordinatorState::LearnerAddressOf(const std::string& actor) const {
  const Member* learner = LearnerOf(actor);
  return learner == nullptr ? "" : learner->data_address;
}

v1::StatusResponse CoordinatorState::Status(MonotonicTime now) const {
  v1::StatusResponse status;
  status.set_run_id(options_.run_id);
  status.set_run_name(options_.config.name());
  status.set_env_id(options_.config.env().id());
  status.set_state(progress_.state());
  *status.mutable_progress() = progress_;
  for (const auto& [id, member] : membership_.members()) {
    *status.add_members() = StatusOf(member, now, lease_);
    const Member* learner = LearnerOf(id);
    if (learner != nullptr) status.mutable_members()->rbegin()->set_learner_id(learner->id);
  }
  status.set_joins(joins_);
  status.set_leaves(leaves_);
  status.set_expirations(expirations_);
  status.set_actor_moves(actor_moves_);
  status.set_uptime_seconds(absl::ToDoubleSeconds(now));
  status.set_run_directory(options_.run_directory);
  status.set_last_error(last_error_);
  ShowHanging(now, &status);
  return status;
}

void CoordinatorState::ShowHanging(MonotonicTime now, v1::StatusResponse* status) const {
  const auto leader = membership_.members().find(leader_);
  if (leader == membership_.members().end()) return;
  if (IsFinal(progress_.state()) || progress_.state() == v1::RUN_STATE_BLOCKED) return;
  const absl::Duration hangs = watch_.Hangs(now);
  if (hangs == absl::ZeroDuration()) return;
  status->set_state(v1::RUN_STATE_BLOCKED);
  status->mutable_progress()->set_state(v1::RUN_STATE_BLOCKED);
  status->set_last_error(absl::StrCat(
      leader_, " on ", leader->second.host, " (pid ", leader->second.pid,
      ") sends heartbeats and has done nothing for ", absl::FormatDuration(absl::Trunc(hangs, absl::Seconds(1))),
      ": its training thread hangs, e.g. in a file system or on a device; see its log, or kill it to go on from the "
      "last checkpoint"));
}

}  // namespace skein
