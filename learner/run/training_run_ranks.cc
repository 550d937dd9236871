// SPDX-License-Identifier: Apache-2.0
// How a run continues when ranks join or leave.
#include <utility>

#include "base/telemetry/log.h"
#include "learner/collect/step_account.h"
#include "learner/run/training_run.h"

namespace skein {
namespace {

// How many attempts to form a group may fail. A new rank gives up first: it may be the cause.
constexpr int kAttempts = 5, kAttemptsOfNewRank = 2;

std::vector<uint32_t> Incarnations(const RankFormation& formation) {
  std::vector<uint32_t> incarnations;
  for (const v1::RankOffer& member : formation.members) incarnations.push_back(member.incarnation());
  return incarnations;
}

}  // namespace

absl::Status TrainingRun::JoinGroup() {
  absl::Status joined;
  for (int attempt = 0; attempt < (ranks_.is_new() ? kAttemptsOfNewRank : kAttempts); ++attempt) {
    trainer_.reset();
    ranks_.Dissolve();
    if (ranks_.single()) return Enter(nullptr);
    const auto formation = ranks_.Meet(record_.iteration, rank_accounts_.incarnations());
    if (!formation.ok()) return formation.status();
    joined = Enter(&*formation);
    if (!absl::IsAborted(joined) || context_.stopping()) return joined;
    spdlog::warn("rank {}: {}", context_.options.rank, std::string(joined.message()));
  }
  return joined;
}

absl::Status TrainingRun::Enter(const RankFormation* formation) {
  if (formation != nullptr) {
    if (absl::Status s = ranks_.Form(*formation); !s.ok()) return s;
  }
  if (absl::Status s = MakeTrainer(); !s.ok()) return s;
  v1::StepAccount lost = accounts_.lost();
  absl::Status s =
      formation != nullptr && formation->has_state ? GoOnFromMemory(*formation, &lost) : GoOnFromCheckpoint();
  if (!s.ok()) return s;
  const v1::RolloutConfig& rollout = context_.config.rollout();
  // Whole parts, where an update has parts.
  const uint32_t parts = context_.config.learner().gradient_parts();
  const uint32_t together = parts > 0 ? rollout.num_envs() / parts : rollout.envs_per_runner();
  const auto share = ShareOfRank(rollout.num_envs(), together, static_cast<uint32_t>(ranks_.place()),
                                 static_cast<uint32_t>(ranks_.size()));
  if (!share.ok()) return share.status();
  share_ = *share;
  own_state_ = Rows(record_.state, share_.first_env, share_.share_envs);
  if (formation == nullptr) return absl::OkStatus();
  v1::RankIteration mine;
  *mine.mutable_account() = accounts_.own();
  if (absl::Status added = AddUp(std::move(mine)).status(); !added.ok()) return added;
  auto kept = trainer_->Keep();
  if (!kept.ok()) return kept.status();
  memory_ = *std::move(kept);
  ranks_.Enter(*formation);
  rank_accounts_.SetGroup(Incarnations(*formation));
  context_.metrics->SetRanks(ranks_.size());
  context_.metrics->SetParametersDigest(trainer_->ParametersDigest());
  accounts_.SetLost(lost);
  report_.SetBlocked("");
  return absl::OkStatus();
}

absl::Status TrainingRun::GoOnFromCheckpoint() {
  auto record = checkpoints_.Resume(trainer_.get());
  if (!record.ok()) return record.status();
  record_ = *std::move(record);
  accounts_.Begin(ranks_.leads() ? Settled(record_.account, 0) : v1::StepAccount());
  return absl::OkStatus();
}

absl::Status TrainingRun::GoOnFromMemory(const RankFormation& formation, v1::StepAccount* lost) {
  Trainer::Resumed mine;
  if (ranks_.leads()) {
    mine.record = record_;
    mine.record.account = rank_accounts_.Settle(ranks_.incarnation(), Incarnations(formation), accounts_.lost());
    mine.checkpoint = checkpoints_.newest();
  }
  const auto taken = trainer_->TakeOver(memory_.get(), mine);
  if (!taken.ok()) return AsLostRank(taken.status());
  if (rank_accounts_.in_update()) {
    // The others may have finished the update that this rank broke off: then its steps are in it.
    if (taken->record.iteration > record_.iteration) {
      source_->Trained(own_steps_);
    } else {
      rank_accounts_.DropUpdate();
    }
    rank_accounts_.EndUpdate();
    auto kept = trainer_->Keep();
    if (!kept.ok()) return kept.status();
    memory_ = *std::move(kept);
  }
  record_ = taken->record;
  checkpoints_.GoOnFrom(taken->checkpoint, record_.env_steps);
  *lost = record_.account;
  spdlog::info("rank {} goes on at {} env steps with {} of {} ranks", context_.options.rank, record_.env_steps,
               formation.members.size(), context_.options.ranks);
  return absl::OkStatus();
}

absl::Status TrainingRun::KeepState() {
  if (rank_accounts_.in_update() || trainer_ == nullptr) return absl::OkStatus();  // memory_ is what it began with.
  auto kept = trainer_->Keep();
  if (kept.ok()) memory_ = *std::move(kept);
  return kept.status();
}

absl::Status TrainingRun::Reform(const std::string& why) {
  spdlog::warn("rank {}: {}; the ranks meet again", context_.options.rank, why);
  if (absl::Status s = KeepState(); !s.ok()) return s;
  if (absl::Status s = JoinGroup(); !s.ok()) return StopAlone(s);
  context_.metrics->CountReformation();
  report_.progress().GoOnFrom(record_.env_steps, record_.iteration, record_.episodes);
  if (absl::Status s = TakeShare(); !s.ok()) return s;
  if (ranks_.leads()) report_.TakeOverLogs(record_).IgnoreError();
  return source_->Publish(record_.iteration, *trainer_);
}

absl::Status TrainingRun::TakeShare() { return source_->TakeShare(share_, own_state_, trainer_.get()); }

// Stops while other ranks are missing or do not return: the rank that would lead writes a checkpoint of the run.
absl::Status TrainingRun::StopAlone(const absl::Status& why) {
  if (!ranks_.reports() || memory_ == nullptr) return why;
  trainer_.reset();
  ranks_.Dissolve();
  if (absl::Status s = MakeTrainer(); !s.ok()) return s;
  Trainer::Resumed resumed;
  resumed.record = record_;
  share_ = {0, context_.config.rollout().num_envs()};
  own_state_ = record_.state;
  if (absl::Status s = trainer_->TakeOver(memory_.get(), resumed).status(); !s.ok()) return s;
  if (context_.on_device()) {
    if (absl::Status s = TakeShare(); !s.ok()) return s;
  }
  accounts_.SetLost(rank_accounts_.Settle(ranks_.incarnation(), {}, accounts_.lost()));
  accounts_.SetOthers({});
  ranks_.LeadAlone();
  rank_accounts_.SetGroup({});
  report_.SetBlocked("");
  if (context_.shutdown->signalled()) return absl::OkStatus();
  SaveCheckpoint().IgnoreError();
  return why;
}

absl::Status TrainingRun::EndTogether() {
  absl::Status ended = AddUpForLastCheckpoint();
  while (absl::IsAborted(ended) && ranks_.group() != nullptr) {
    spdlog::warn("rank {}: {}; the ranks meet once more", context_.options.rank, std::string(ended.message()));
    if (absl::Status s = KeepState(); !s.ok()) return s;
    ended = JoinGroup();
    if (!ended.ok()) return StopAlone(ended);
    if (absl::Status s = TakeShare(); !s.ok()) return s;
    ended = AddUpForLastCheckpoint();
  }
  return ended;
}

}  // namespace skein
