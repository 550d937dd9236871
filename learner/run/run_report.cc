// SPDX-License-Identifier: Apache-2.0
#include "learner/run/run_report.h"

#include <limits>
#include <map>
#include <utility>

#include "base/process/clock.h"
#include "base/process/file.h"
#include "base/telemetry/log.h"
#include "nlohmann/json.hpp"

namespace skein {

RunReport::RunReport(const RunContext& context, const RunAccounts& accounts, RunCallbacks* callbacks)
    : context_(context), accounts_(accounts), callbacks_(*callbacks), started_(MonotonicNow()) {}

void RunReport::Begin(const RunRecord& record, const Trainer::Saved& checkpoint, const EnvSpec& spec,
                      std::vector<WatchRule> rules) {
  progress_ = std::make_unique<ProgressTracker>(context_.config.total_steps(), record.env_steps, record.iteration,
                                                record.episodes, spec.episode_metrics, record.last_episodes);
  watch_.emplace(std::move(rules));
  if (!checkpoint.path.empty()) progress_->SetCheckpoint(checkpoint.path, checkpoint.digest);
  begun_ = true;
}

absl::Status RunReport::OpenLogs(const RunRecord& record) {
  const std::string& folder = context_.options.run_directory;
  if (iteration_log_ == nullptr) {
    auto opened = IterationLog::Open(folder + "/metrics.jsonl");
    if (!opened.ok()) return opened.status();
    iteration_log_ = *std::move(opened);
  }
  const auto last = iteration_log_->KeepUpTo(record.iteration);
  if (!last.ok())
    spdlog::warn("metrics.jsonl keeps lines of other iterations: {}", std::string(last.status().message()));
  logged_ = last.value_or(0);
  if (const absl::Status trimmed = EventLog::KeepUpTo(folder, record.env_steps); !trimmed.ok()) {
    spdlog::warn("TensorBoard sees some steps twice: {}", std::string(trimmed.message()));
  }
  if (event_log_ == nullptr) {
    auto event_log = EventLog::Open(folder, record.env_steps, absl::Now());
    if (event_log.ok()) {
      event_log_ = *std::move(event_log);
    } else {
      spdlog::warn("nothing for TensorBoard: {}", std::string(event_log.status().message()));
    }
  }
  // The files are new in the folder: without this they may be gone after a power failure.
  if (const absl::Status synced = SyncFolder(folder); !synced.ok()) spdlog::warn("{}", std::string(synced.message()));
  return absl::OkStatus();
}

absl::Status RunReport::TakeOverLogs(const RunRecord& record) {
  if (absl::Status s = OpenLogs(record); !s.ok()) return s;
  if (logged_ == 0 || logged_ + 1 != record.iteration) return absl::OkStatus();
  nlohmann::json line;
  line["iteration"] = record.iteration;
  line["env_steps"] = record.env_steps;
  line["episodes"] = record.episodes;
  line["seconds"] = absl::ToDoubleSeconds(MonotonicNow() - started_);
  line["episode_return_mean"] = nullptr;
  Append(line);
  return absl::OkStatus();
}

void RunReport::SyncLogs() {
  if (iteration_log_ != nullptr) NoteUnwritten(iteration_log_->Sync());
  if (event_log_ != nullptr) event_log_->Sync();
}

void RunReport::Append(const nlohmann::json& line) {
  logged_ = line["iteration"];
  NoteUnwritten(iteration_log_->Append(line.dump()));
}

void RunReport::NoteUnwritten(const absl::Status& status) {
  if (!status.ok() && !std::exchange(unwritten_, true)) {
    spdlog::error("{}; its lines are kept until they can be written", std::string(status.message()));
  }
  if (status.ok()) unwritten_ = false;
}

void RunReport::LogIteration(const RunRecord& record, const ProgressTracker::Iteration& counted,
                             const v1::StageSeconds& actors, bool leads, bool several_ranks, const Trainer& trainer,
                             Columns* batch) {
  if (leads) Watch(counted);
  v1::RunProgress progress;
  FillReport(nullptr, &progress);
  if (!leads) return context_.metrics->SetProgress(progress);
  nlohmann::json line;
  line["iteration"] = record.iteration;
  line["env_steps"] = record.env_steps;
  line["seconds"] = absl::ToDoubleSeconds(MonotonicNow() - started_);
  if (progress.phases() > 0) line["phase"] = progress.phase();
  line["policy_lag"] = counted.policy_lag;
  line["episodes"] = progress.episodes();
  line["failed_episodes"] = counted.failed_episodes;
  line["episode_return_mean"] = progress.mean_episode_return();  // NaN becomes null.
  for (const auto& [name, value] : progress.episode_metrics()) line["episode_metrics"][name] = value;
  if (!several_ranks) line["samples"] = counted.samples;
  line["env_steps_per_second"] = progress.env_steps_per_second_10s();
  for (const auto& [name, value] : counted.stats) line["update"][name] = value;
  for (const auto& [name, value] : progress.stage_seconds()) line["learner_stage_seconds"][name] = value;
  line["learner_stage_seconds"]["update_cpu"] = absl::ToDoubleSeconds(update_cpu_);
  line["actor_stage_seconds"] = {{"env_step", actors.env_step()},
                                 {"inference", actors.inference()},
                                 {"build", actors.build()},
                                 {"wait", actors.wait()}};
  const std::map<std::string, double> added = callbacks_.Iteration(line);
  for (const auto& [name, value] : added) line["callback"][name] = value;
  progress_->SetCallbackMetrics(added);
  progress.mutable_callback_metrics()->clear();
  progress.mutable_callback_metrics()->insert(added.begin(), added.end());
  context_.metrics->SetCallbackSpent(callbacks_.spent());
  context_.metrics->SetProgress(progress);
  Append(line);
  LogEvents(progress, trainer, batch);
}

void RunReport::Watch(const ProgressTracker::Iteration& counted) {
  std::map<std::string, double> stages = context_.metrics->StageSeconds();
  const Collector* const collector = accounts_.collector();
  const auto target = static_cast<double>(context_.config.total_steps());
  for (const std::string& warning : watch_->Observe({.stats = &counted.stats,
                                    .progress = static_cast<double>(progress_->env_steps()) / target,
                                    .seconds = absl::ToDoubleSeconds(MonotonicNow() - started_),
                                    .waiting_seconds = stages["barrier"],
                                    .update_seconds = stages["update"],
                                    .actors = collector == nullptr ? 0 : collector->actors(),
                                    .completed_episodes = counted.episode_returns->size(),
                                    .failed_episodes = counted.failed_episodes,
                                    .return_mean = progress_->Snapshot(MonotonicNow()).mean_episode_return(),
                                    .return_spread = progress_->ReturnSpread()})) {
    spdlog::warn("{}", warning);
    progress_->AddWarning(warning);
  }
}

void RunReport::LogEvents(const v1::RunProgress& progress, const Trainer& trainer, Columns* batch) {
  if (event_log_ == nullptr) return;
  const absl::Time now = absl::Now();
  event_log_->LogIteration(progress, now);
  if (!event_log_->SamplesDue(now)) return;
  const auto samples = trainer.LastSamples(batch);
  if (samples.ok()) event_log_->LogSamples(*samples, progress.env_steps(), now);
}

void RunReport::SetBlocked(const std::string& missing) {
  absl::MutexLock lock(&mu_);
  if (!missing.empty() && blocked_.empty()) spdlog::error("blocked: {}", missing);
  blocked_ = missing;
}

v1::RunProgress RunReport::Progress() const {
  v1::RunProgress progress;
  if (begun_) {
    progress = progress_->Snapshot(MonotonicNow());
    *progress.mutable_account() = accounts_.total();
    if (accounts_.collector() != nullptr) progress.set_queued_batches(accounts_.collector()->queued_fragments());
    for (const auto& [stage, seconds] : context_.metrics->StageSeconds()) {
      (*progress.mutable_stage_seconds())[stage] = seconds;
    }
  } else {
    progress.set_state(v1::RUN_STATE_STARTING);
    progress.set_target_env_steps(context_.config.total_steps());
    progress.set_mean_episode_return(std::numeric_limits<double>::quiet_NaN());
    progress.set_eta_seconds(-1);
  }
  if (const v1::ModelConfig& model = context_.config.model();
      model.memory() == v1::MEMORY_GRU || model.memory() == v1::MEMORY_LSTM) {
    progress.set_memory(model.memory() == v1::MEMORY_GRU ? "gru" : "lstm");
    progress.set_memory_size(model.memory_size());
  }
  absl::MutexLock lock(&mu_);
  if (!blocked_.empty()) {
    progress.set_state(v1::RUN_STATE_BLOCKED);
    progress.set_last_error(blocked_);
  }
  return progress;
}

void RunReport::FillReport(v1::MemberReport* report, v1::RunProgress* progress) const {
  const v1::RunProgress now = Progress();
  if (progress != nullptr) *progress = now;
  if (report == nullptr || !begun_) return;
  report->set_env_steps(now.env_steps());
  report->set_env_steps_per_second(now.env_steps_per_second_10s());
  report->set_policy_version(now.policy_version());
  *report->mutable_stage_seconds() = now.stage_seconds();
  report->set_last_error(now.last_error());
  const Collector* const collector = accounts_.collector();
  const absl::Duration starving = collector != nullptr ? collector->waiting() : absl::ZeroDuration();
  context_.metrics->SetStarving(starving);
  report->set_starving_seconds(absl::ToDoubleSeconds(starving));
}

}  // namespace skein
