// SPDX-License-Identifier: Apache-2.0
// What the ranks' parts add up to, and what people are told of it.
#include <limits>
#include <utility>

#include "base/process/clock.h"
#include "learner/collect/step_account.h"
#include "learner/run/training_run.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

void Add(const v1::StageSeconds& from, v1::StageSeconds* to) {
  to->set_env_step(to->env_step() + from.env_step());
  to->set_inference(to->inference() + from.inference());
  to->set_build(to->build() + from.build());
  to->set_wait(to->wait() + from.wait());
}

// The rows of all parts, in their order.
v1::Tensor Join(const std::vector<const v1::Tensor*>& parts) {
  v1::Tensor all = *parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    all.set_shape(0, all.shape(0) + parts[i]->shape(0));
    all.mutable_data()->append(parts[i]->data());
  }
  return all;
}

}  // namespace

absl::StatusOr<TrainingRun::Sum> TrainingRun::AddUp(v1::RankIteration mine) {
  std::vector<v1::RankIteration> all;
  if (group_ == nullptr) {
    all.push_back(std::move(mine));
  } else {
    auto gathered = group_->Gather(mine);
    if (!gathered.ok()) return gathered.status();
    all = *std::move(gathered);
  }
  Sum sum;
  v1::StepAccount others;
  std::vector<const v1::Tensor*> states;
  told_.clear();
  in_flight_.clear();
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const v1::RankIteration& part = all[rank];
    told_.push_back(part.account());
    if (static_cast<int>(rank) != place()) Add(part.account(), &others);
    sum.episode_return.insert(sum.episode_return.end(), part.episode_return().begin(), part.episode_return().end());
    sum.episode_length.insert(sum.episode_length.end(), part.episode_length().begin(), part.episode_length().end());
    sum.episode_metrics.insert(sum.episode_metrics.end(), part.episode_metrics().begin(), part.episode_metrics().end());
    Add(part.stage_seconds(), &sum.stage_seconds);
    if (part.has_env_state()) states.push_back(&part.env_state());
  }
  if (states.size() == all.size()) sum.env_state = Join(states);
  absl::MutexLock lock(&mu_);
  others_ = others;
  return sum;
}

absl::Status TrainingRun::AddUpForLastCheckpoint() {
  if (on_device() && record_.iteration > 0) {
    auto state = trainer_->EnvStateOnDevice();
    if (!state.ok()) return state.status();
    own_env_state_ = *std::move(state);
  }
  v1::RankIteration mine;
  *mine.mutable_account() = OwnAccount();
  if (own_env_state_) *mine.mutable_env_state() = *own_env_state_;
  const auto sum = AddUp(std::move(mine));
  if (sum.ok()) record_.env_state = sum->env_state;
  return sum.status();
}

void TrainingRun::LogIteration(const v1::StageSeconds& actors, const ProgressTracker::Iteration& counted,
                               Columns* batch) {
  v1::RunProgress progress;
  FillReport(nullptr, &progress);
  metrics_->SetProgress(progress);
  if (!leads_) return;
  nlohmann::json line;
  line["iteration"] = record_.iteration;
  line["env_steps"] = record_.env_steps;
  line["seconds"] = absl::ToDoubleSeconds(MonotonicNow() - started_);
  line["policy_lag"] = counted.policy_lag;
  line["episodes"] = progress.episodes();
  line["episode_return_mean"] = progress.mean_episode_return();  // NaN becomes null.
  for (const auto& [name, value] : progress.episode_metrics()) line["episode_metrics"][name] = value;
  // A rank does not know the others'.
  if (group_ == nullptr) line["samples"] = counted.samples;
  line["env_steps_per_second"] = progress.env_steps_per_second_10s();
  for (const auto& [name, value] : counted.stats) line["update"][name] = value;
  for (const auto& [name, value] : progress.stage_seconds()) line["learner_stage_seconds"][name] = value;
  line["learner_stage_seconds"]["update_cpu"] = absl::ToDoubleSeconds(update_cpu_);
  line["actor_stage_seconds"] = {{"env_step", actors.env_step()},
                                 {"inference", actors.inference()},
                                 {"build", actors.build()},
                                 {"wait", actors.wait()}};
  metrics_log_ << line.dump() << std::endl;
  LogEvents(progress, batch);
}

void TrainingRun::LogEvents(const v1::RunProgress& progress, Columns* batch) {
  if (event_log_ == nullptr) return;
  const absl::Time now = absl::Now();
  event_log_->LogIteration(progress, now);
  if (!event_log_->SamplesDue(now)) return;
  const auto samples = trainer_->LastSamples(batch);
  if (samples.ok()) event_log_->LogSamples(*samples, progress.env_steps(), now);
}

v1::StepAccount TrainingRun::OwnAccount() const {
  if (collector_ != nullptr) return collector_->account();
  absl::MutexLock lock(&mu_);
  return device_account_;
}

v1::StepAccount TrainingRun::Account() const {
  v1::StepAccount account = OwnAccount();
  absl::MutexLock lock(&mu_);
  Add(others_, &account);
  Add(lost_ranks_, &account);
  return account;
}

v1::RunProgress TrainingRun::Progress() const {
  v1::RunProgress progress;
  if (prepared_) {
    progress = progress_->Snapshot(MonotonicNow());
    *progress.mutable_account() = Account();
    if (collector_ != nullptr) progress.set_queued_batches(collector_->queued_batches());
    for (const auto& [stage, seconds] : metrics_->StageSeconds()) (*progress.mutable_stage_seconds())[stage] = seconds;
  } else {
    progress.set_state(v1::RUN_STATE_STARTING);
    progress.set_target_env_steps(config_.total_steps());
    progress.set_mean_episode_return(std::numeric_limits<double>::quiet_NaN());
    progress.set_eta_seconds(-1);
  }
  absl::MutexLock lock(&mu_);
  if (!blocked_.empty()) {
    progress.set_state(v1::RUN_STATE_BLOCKED);
    progress.set_last_error(blocked_);
  }
  return progress;
}

void TrainingRun::FillReport(v1::MemberReport* report, v1::RunProgress* progress) const {
  const v1::RunProgress now = Progress();
  if (progress != nullptr) *progress = now;
  if (report == nullptr || !prepared_) return;
  report->set_env_steps(now.env_steps());
  report->set_env_steps_per_second(now.env_steps_per_second_10s());
  report->set_policy_version(now.policy_version());
  *report->mutable_stage_seconds() = now.stage_seconds();
  report->set_last_error(now.last_error());
  const absl::Duration starving = collector_ != nullptr ? collector_->waiting() : absl::ZeroDuration();
  metrics_->SetStarving(starving);
  report->set_starving_seconds(absl::ToDoubleSeconds(starving));
}

}  // namespace skein
