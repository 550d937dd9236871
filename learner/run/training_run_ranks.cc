// SPDX-License-Identifier: Apache-2.0
// Ranks come and go: how the others go on.
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/net/host_port.h"
#include "base/process/clock.h"
#include "base/telemetry/log.h"
#include "learner/collect/step_account.h"
#include "learner/run/training_run.h"

namespace skein {
namespace {

// How long ranks may take to start, the first one's wait for the last; and how long those that have trained wait for
// others to return.
constexpr absl::Duration kStart = absl::Minutes(2), kReturn = absl::Minutes(10);
// So often a group is tried that then does not connect. A newcomer gives up first: it may be the cause.
constexpr int kAttempts = 5, kAttemptsOfNewcomer = 2;
// So often in a row a group is formed that finishes no iteration.
constexpr int kFruitless = 10;
// How often the leader of a group that is not complete looks for newcomers, and how long that may take.
constexpr absl::Duration kRollPeriod = absl::Seconds(1), kRollDeadline = absl::Milliseconds(300);

// Rows [first, first + rows) of a tensor [N, S] of doubles.
v1::Tensor Rows(const v1::Tensor& all, uint32_t first, uint32_t rows) {
  const size_t row_bytes = all.data().size() / static_cast<size_t>(all.shape(0));
  v1::Tensor part = all;
  part.set_shape(0, rows);
  part.set_data(all.data().substr(first * row_bytes, rows * row_bytes));
  return part;
}

}  // namespace

absl::StatusOr<RankFormation> TrainingRun::MeetRanks() {
  FormingOptions forming;
  forming.rank = options_.rank;
  forming.ranks = options_.ranks;
  forming.min_ranks = LeastRanks(config_.learner().min_ranks(), options_.ranks);
  forming.tired_after = absl::Seconds(config_.coordinator().barrier_timeout_seconds());
  forming.limit = group_number_ == 0 ? kStart : kReturn;
  forming.stopping = [this] { return stopping(); };
  forming.on_look = [this](const RankFormation& formation) {
    // Ranks that have just started know nothing of the run yet.
    reports_ = formation.members.front().rank() == options_.rank && (formation.has_state || formation.blocked);
    absl::MutexLock lock(&mu_);
    if (formation.blocked && blocked_.empty()) spdlog::error("blocked: {}", formation.missing_text);
    blocked_ = formation.blocked ? formation.missing_text : "";
  };
  v1::RankOffer mine;
  mine.set_rank(options_.rank);
  mine.set_life(life_);
  mine.set_group(group_number_);
  mine.mutable_lives()->Add(lives_.begin(), lives_.end());
  mine.set_iteration(record_.iteration);
  mine.set_attempted(attempted_);
  spdlog::info("rank {} of {} meets the others", options_.rank, options_.ranks);
  auto formation = MeetToForm(forming, mine, coordinator_);
  if (!formation.ok()) return formation;
  if (formation->kind == RankFormation::Kind::kLeftBehind) {
    return absl::AbortedError(absl::StrCat("the other ranks have gone on without rank ", options_.rank,
                                           ", which was silent: start it again, and it joins them"));
  }
  attempted_ = formation->number;
  return formation;
}

absl::Status TrainingRun::JoinGroup() {
  absl::Status joined;
  for (int attempt = 0; attempt < (group_number_ == 0 ? kAttemptsOfNewcomer : kAttempts); ++attempt) {
    // The others see that this rank is not in a collective with them any more.
    trainer_.reset();
    group_.reset();
    if (options_.ranks == 1) return Enter(nullptr);
    const auto formation = MeetRanks();
    if (!formation.ok()) return formation.status();
    joined = Enter(&*formation);
    if (!absl::IsAborted(joined) || stopping()) return joined;
    spdlog::warn("rank {}: {}", options_.rank, std::string(joined.message()));
  }
  return joined;
}

absl::Status TrainingRun::FormGroup(const RankFormation& formation) {
  RankGroup::Options group;
  group.size = static_cast<int>(formation.members.size());
  while (formation.members[static_cast<size_t>(group.rank)].rank() != options_.rank) ++group.rank;
  group.number = formation.number;
  group.announce_host = options_.announce_host;
  group.device = options_.device.empty() ? config_.learner().device() : options_.device;
  group.local_rank = static_cast<int>(options_.local_rank);
  group.coordinator = FirstAddress(options_.coordinator);
  group.form_timeout = group.meeting_timeout = absl::Seconds(config_.coordinator().barrier_timeout_seconds());
  group.timeout = absl::Seconds(config_.learner().collective_timeout_seconds());
  group.stopping = [this] { return shutdown_->signalled(); };
  auto formed = RankGroup::Form(group, coordinator_);
  if (!formed.ok()) return formed.status();
  group_ = *std::move(formed);
  ranks_there_.clear();
  for (const v1::RankOffer& member : formation.members) ranks_there_.insert(member.rank());
  leads_ = reports_ = group.rank == 0;
  return absl::OkStatus();
}

absl::Status TrainingRun::Enter(const RankFormation* formation) {
  if (formation != nullptr) {
    if (absl::Status s = FormGroup(*formation); !s.ok()) return s;
  }
  if (absl::Status s = MakeTrainer(); !s.ok()) return s;
  v1::StepAccount lost = LostRanks();
  absl::Status s =
      formation != nullptr && formation->has_state ? GoOnFromMemory(*formation, &lost) : GoOnFromCheckpoint();
  if (!s.ok()) return s;
  const v1::RolloutConfig& rollout = config_.rollout();
  const auto share = ShareOfRank(rollout.num_envs(), rollout.envs_per_runner(), static_cast<uint32_t>(place()),
                                 group_ == nullptr ? 1 : static_cast<uint32_t>(group_->size()));
  if (!share.ok()) return share.status();
  share_ = *share;
  own_env_state_.reset();
  if (record_.env_state) own_env_state_ = Rows(*record_.env_state, share_.first_env, share_.num_envs);
  if (formation == nullptr) return absl::OkStatus();
  v1::RankIteration mine;
  *mine.mutable_account() = OwnAccount();
  if (absl::Status added = AddUp(std::move(mine)).status(); !added.ok()) return added;
  auto kept = trainer_->Keep();
  if (!kept.ok()) return kept.status();
  memory_ = *std::move(kept);
  group_number_ = formation->number;
  lives_.clear();
  for (const v1::RankOffer& member : formation->members) lives_.push_back(member.life());
  metrics_->SetRanks(group_->size());
  metrics_->SetParametersDigest(trainer_->ParametersDigest());
  absl::MutexLock lock(&mu_);
  lost_ranks_ = lost;
  blocked_.clear();
  return absl::OkStatus();
}

absl::Status TrainingRun::GoOnFromMemory(const RankFormation& formation, v1::StepAccount* lost) {
  Trainer::Resumed mine;
  if (leads_) {
    std::vector<uint32_t> there;
    for (const v1::RankOffer& member : formation.members) there.push_back(member.life());
    mine.record = record_;
    mine.record.account = Settle(there);
    mine.checkpoint = checkpoint_;
  }
  const auto taken = trainer_->TakeOver(memory_.get(), mine);
  if (!taken.ok()) return AsLostRank(taken.status());
  if (in_update_) {
    // The others may have finished the update that this rank broke off: then its steps are in it.
    if (taken->record.iteration > record_.iteration) {
      CountTrained(own_steps_);
    } else {
      in_flight_.clear();
    }
    in_update_ = false;
    auto kept = trainer_->Keep();
    if (!kept.ok()) return kept.status();
    memory_ = *std::move(kept);
  }
  record_ = taken->record;
  checkpoint_ = taken->checkpoint;
  *lost = record_.account;
  const uint64_t interval = std::max<uint64_t>(1, config_.checkpoint().interval_steps());
  next_save_ = (record_.env_steps / interval + 1) * interval;
  spdlog::info("rank {} goes on at {} env steps with {} of {} ranks", options_.rank, record_.env_steps,
               formation.members.size(), options_.ranks);
  return absl::OkStatus();
}

v1::StepAccount TrainingRun::Settle(const std::vector<uint32_t>& there) const {
  v1::StepAccount lost = LostRanks();
  for (size_t place = 0; place < lives_.size() && place < told_.size(); ++place) {
    if (lives_[place] == life_ || absl::c_linear_search(there, lives_[place])) continue;
    const bool trained = !in_update_ && place < in_flight_.size();
    Add(Settled(told_[place], trained ? in_flight_[place] : 0), &lost);
  }
  return lost;
}

v1::StepAccount TrainingRun::LostRanks() const {
  absl::MutexLock lock(&mu_);
  return lost_ranks_;
}

absl::Status TrainingRun::KeepState() {
  if (in_update_ || trainer_ == nullptr) return absl::OkStatus();  // memory_ is what it began with.
  auto kept = trainer_->Keep();
  if (kept.ok()) memory_ = *std::move(kept);
  return kept.status();
}

absl::Status TrainingRun::Reform(LearnerService* service, const std::string& why) {
  spdlog::warn("rank {}: {}; the ranks meet again", options_.rank, why);
  if (absl::Status s = KeepState(); !s.ok()) return s;
  if (absl::Status s = JoinGroup(); !s.ok()) return StopAlone(s);
  metrics_->CountReformation();
  progress_->GoOnFrom(record_.env_steps, record_.iteration, record_.episodes);
  if (absl::Status s = TakeUpShare(); !s.ok()) return s;
  open_ = 0;
  starves_ = false;
  OpenLogs().IgnoreError();
  if (on_device()) return absl::OkStatus();
  collector_->Published(record_.iteration + 1);
  if (absl::Status s = Publish(); !s.ok()) return s;
  service->SendGrants();
  return absl::OkStatus();
}

absl::Status TrainingRun::TakeUpShare() {
  if (on_device()) {
    {
      absl::MutexLock lock(&mu_);
      device_account_ = Settled(device_account_, 0);
    }
    return BeginOnDevice();
  }
  collector_->TakeShare({share_.first_env, share_.num_envs, AsyncFragments(), {.env_state = own_env_state_}});
  return absl::OkStatus();
}

// Asked to stop while others are missing, or they do not return: whoever would lead writes down where the run is.
absl::Status TrainingRun::StopAlone(const absl::Status& why) {
  if (!reports_ || memory_ == nullptr) return why;
  trainer_.reset();
  group_.reset();
  if (absl::Status s = MakeTrainer(); !s.ok()) return s;
  Trainer::Resumed resumed;
  resumed.record = record_;
  share_ = {0, config_.rollout().num_envs()};
  own_env_state_ = record_.env_state;
  if (absl::Status s = trainer_->TakeOver(memory_.get(), resumed).status(); !s.ok()) return s;
  if (on_device()) {
    if (absl::Status s = TakeUpShare(); !s.ok()) return s;
  }
  const v1::StepAccount lost = Settle({});
  leads_ = true;
  lives_.clear();
  {
    absl::MutexLock lock(&mu_);
    lost_ranks_ = lost;
    others_.Clear();
    blocked_.clear();
  }
  if (shutdown_->signalled()) return absl::OkStatus();
  SaveCheckpoint().IgnoreError();
  return why;
}

absl::Status TrainingRun::TrainWithThoseThere(LearnerService* service) {
  int fruitless = 0;
  while (true) {
    const uint64_t before = record_.iteration;
    decision_ = {};
    const absl::Status trained = on_device() ? TrainOnDeviceUntilDone() : TrainUntilDone(service);
    const bool admits = trained.ok() && record_.env_steps < config_.total_steps() &&
                        (decision_.admits || decision_.kind == RankDecision::Kind::kAdmit);
    if (group_ == nullptr || !(admits || absl::IsAborted(trained))) return trained;
    fruitless = record_.iteration > before ? 0 : fruitless + 1;
    if (fruitless > kFruitless && !trained.ok()) return trained;
    const absl::Status reformed = Reform(service, admits ? "a rank has come" : std::string(trained.message()));
    if (!reformed.ok() || group_ == nullptr) return reformed;
  }
}

absl::Status TrainingRun::EndTogether() {
  absl::Status ended = AddUpForLastCheckpoint();
  while (absl::IsAborted(ended) && group_ != nullptr) {
    spdlog::warn("rank {}: {}; the ranks meet once more", options_.rank, std::string(ended.message()));
    if (absl::Status s = KeepState(); !s.ok()) return s;
    ended = JoinGroup();
    if (!ended.ok()) return StopAlone(ended);
    if (absl::Status s = TakeUpShare(); !s.ok()) return s;
    ended = AddUpForLastCheckpoint();
  }
  return ended;
}

bool TrainingRun::NewcomerIsThere() {
  if (!leads_ || ranks_there_.size() == options_.ranks) return false;
  const absl::Duration now = MonotonicNow();
  if (now < next_roll_) return newcomer_;
  next_roll_ = now + kRollPeriod;
  if (roll_ == nullptr) roll_ = std::make_unique<RankRoll>(options_.coordinator);
  const auto live = roll_->Call(kRollDeadline);
  newcomer_ = live.ok() && absl::c_any_of(*live, [this](uint32_t rank) { return ranks_there_.count(rank) == 0; });
  return newcomer_;
}

absl::StatusOr<RankDecision> TrainingRun::AgreeWithRanks(std::optional<int64_t> columns) {
  v1::RankRound mine;
  mine.set_ready(columns.has_value());
  mine.set_columns(columns.value_or(0));
  mine.set_idle_seconds(absl::ToDoubleSeconds(MonotonicNow() - arrived_));
  mine.set_stop(shutdown_->signalled());
  mine.set_newcomer(NewcomerIsThere());
  const auto rounds = group_->Meet(mine);
  if (!rounds.ok()) return rounds.status();
  return Decide(*rounds, group_->rank(), absl::Seconds(config_.learner().shortfall_seconds()));
}

}  // namespace skein
