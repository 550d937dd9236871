// SPDX-License-Identifier: Apache-2.0
#include "learner/training_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "env/registry.h"
#include "learner/env_share.h"
#include "learner/fragment_shape.h"
#include "model/env_config.h"

namespace skein {
namespace {

using Stage = LearnerMetrics::Stage;

// How often tickets that are late are looked for while an iteration is waited for.
constexpr absl::Duration kLateTickets = absl::Milliseconds(20);
// How often people are told what is waited for.
constexpr absl::Duration kTell = absl::Seconds(5);
// How long ranks may take to start, the first one's wait for the last.
constexpr absl::Duration kFormTimeout = absl::Seconds(120);

// Rows [first, first + rows) of a tensor [N, S] of doubles.
v1::Tensor Rows(const v1::Tensor& all, uint32_t first, uint32_t rows) {
  const size_t row_bytes = all.data().size() / static_cast<size_t>(all.shape(0));
  v1::Tensor part = all;
  part.set_shape(0, rows);
  part.set_data(all.data().substr(first * row_bytes, rows * row_bytes));
  return part;
}

}  // namespace

TrainingRun::TrainingRun(const LearnerOptions& options, CoordinatorClient* coordinator, LearnerMetrics* metrics,
                         ShutdownSignal* shutdown, const Cancellation* expulsion)
    : options_(options),
      coordinator_(coordinator),
      config_(coordinator->config()),
      run_id_(coordinator->membership().run_id),
      metrics_(metrics),
      shutdown_(shutdown),
      expulsion_(expulsion),
      checkpoints_(options.run_directory + "/checkpoints"),
      started_(MonotonicNow()),
      publisher_(metrics) {}

absl::Status TrainingRun::FormGroup() {
  if (options_.ranks == 1) return absl::OkStatus();
  RankGroup::Options group;
  group.rank = static_cast<int>(options_.rank);
  group.size = static_cast<int>(options_.ranks);
  group.announce_host = options_.announce_host;
  group.device = options_.device.empty() ? config_.learner().device() : options_.device;
  group.local_rank = static_cast<int>(options_.local_rank);
  group.coordinator = options_.coordinator;
  group.form_timeout = kFormTimeout;
  group.timeout = absl::Seconds(config_.learner().collective_timeout_seconds());
  group.stopping = [this] { return shutdown_->signalled(); };
  auto formed = RankGroup::Form(group, coordinator_);
  if (!formed.ok()) return formed.status();
  group_ = *std::move(formed);
  return absl::OkStatus();
}

absl::Status TrainingRun::Prepare() {
  auto env = MakeEnv(config_.env().id(), MakeEnvOptions(config_.env()));
  if (!env.ok()) return env.status();
  if (absl::Status s = FormGroup(); !s.ok()) return s;
  v1::RunConfig config = config_;
  if (!options_.device.empty()) config.mutable_learner()->set_device(options_.device);
  auto trainer = Trainer::Make(config, (*env)->spec(), group_ == nullptr ? nullptr : group_->collective(),
                               static_cast<int>(options_.local_rank));
  if (!trainer.ok()) return AsLostRank(trainer.status());
  trainer_ = *std::move(trainer);

  std::optional<Trainer::Saved> resumed_from;
  if (options_.resume != ResumeMode::kNever) {
    auto resumed = trainer_->Resume(checkpoints_);
    if (resumed.ok()) {
      record_ = resumed->record;
      saved_env_steps_ = record_.env_steps;
      resumed_from = resumed->checkpoint;
      for (const std::string& warning : resumed->warnings) spdlog::warn("{}", warning);
      spdlog::info("resumed from {} at {} env steps", resumed->checkpoint.path, record_.env_steps);
    } else if (resumed.status().code() != absl::StatusCode::kNotFound || options_.resume == ResumeMode::kMust) {
      return AsLostRank(resumed.status());
    }
  }
  progress_ = std::make_unique<ProgressTracker>(config_.total_steps(), record_.env_steps, record_.iteration,
                                                record_.episodes, (*env)->spec().episode_metrics);
  if (resumed_from) progress_->SetCheckpoint(resumed_from->path, resumed_from->digest);
  agents_ = static_cast<uint64_t>((*env)->spec().num_agents);
  const v1::RolloutConfig& rollout = config_.rollout();
  const auto share = ShareOfRank(rollout.num_envs(), rollout.envs_per_runner(), options_.rank, options_.ranks);
  if (!share.ok()) return share.status();
  share_ = *share;
  if (record_.env_state) own_env_state_ = Rows(*record_.env_state, share_.first_env, share_.num_envs);
  if (absl::Status s = on_device() ? BeginOnDevice() : MakeCollector(); !s.ok()) return s;
  if (leads()) {
    metrics_log_.open(options_.run_directory + "/metrics.jsonl", std::ios::app);
    if (!metrics_log_) return absl::PermissionDeniedError(options_.run_directory + "/metrics.jsonl: cannot be written");
    auto event_log = EventLog::Open(options_.run_directory, record_.env_steps, absl::Now());
    if (event_log.ok()) {
      event_log_ = *std::move(event_log);
    } else {
      spdlog::warn("nothing for TensorBoard: {}", std::string(event_log.status().message()));
    }
  }
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status TrainingRun::MakeCollector() {
  const v1::RolloutConfig& rollout = config_.rollout();
  auto shape = MakeFragmentShape(config_);
  if (!shape.ok()) return shape.status();

  Collector::Options collect;
  collect.run_id = run_id_;
  collect.shape = *shape;
  collect.first_env = share_.first_env;
  collect.num_envs = share_.num_envs;
  collect.rank = options_.rank;
  collect.ranks = options_.ranks;
  const int64_t fragments = rollout.steps_per_iteration() / (shape->steps * shape->num_envs);
  if (config_.sync().mode() == v1::SYNC_MODE_ASYNC) {
    // In proportion to the share, so that ranks whose actors are equally fast are done at the same time.
    const int64_t own = fragments * share_.num_envs / rollout.num_envs();
    collect.async = Collector::Async{static_cast<uint32_t>(std::max<int64_t>(1, own)), config_.sync().max_policy_lag()};
  } else {
    collect.fragments_per_block = static_cast<uint32_t>(fragments * shape->num_envs / rollout.num_envs());
  }
  // Above the ids of any earlier process of this run: those count up from an earlier millisecond.
  collect.first_ticket_id = static_cast<uint64_t>(absl::ToUnixMillis(absl::Now())) << 20;
  if (leads()) collect.account = record_.account;
  collect.env_state = own_env_state_;
  collector_ = std::make_unique<Collector>(collect, metrics_);
  return absl::OkStatus();
}

absl::Status TrainingRun::Run(LearnerService* service) {
  if (absl::Status s = Prepare(); !s.ok()) return s;
  absl::Status trained;
  if (on_device()) {
    service->ServeNobody();
    trained = TrainOnDeviceUntilDone();
  } else {
    if (absl::Status s = Publish(); !s.ok()) return s;
    service->Serve(run_id_, collector_.get(), &publisher_);
    shutdown_->OnSignal([this] { collector_->Stop(); });
    trained = TrainUntilDone(service);
    shutdown_->OnSignal({});
    collector_->Stop();
  }
  // A run that lost a rank is not over: all ranks start again and resume, and actors wait for them.
  const bool lost_rank = absl::IsAborted(trained);
  if (!lost_rank) service->Finish();
  publisher_.Finish();
  if (!lost_rank) service->WaitUntilIdle(absl::Seconds(2));
  if (collector_ != nullptr) collector_->CloseBooks();
  if (trained.ok() && group_ != nullptr && !expulsion_->status().ok()) {
    record_.env_state.reset();  // Where the others' environments are is not known.
  } else if (trained.ok()) {
    trained = AddUpForLastCheckpoint();
  }
  if (trained.ok() && leads()) trained = SaveCheckpoint();  // The last one: without it the run is not finished.
  if (trained.ok() && record_.env_steps < config_.total_steps()) trained = expulsion_->status();
  const bool finished = trained.ok() && record_.env_steps >= config_.total_steps();
  if (!trained.ok()) progress_->SetError(std::string(trained.message()));
  if (absl::IsAborted(trained)) return trained;
  progress_->SetState(finished ? v1::RUN_STATE_FINISHED : trained.ok() ? v1::RUN_STATE_STOPPED : v1::RUN_STATE_FAILED);
  return trained;
}

void TrainingRun::Open(LearnerService* service) {
  collector_->OpenIteration(record_.iteration + 1);
  service->SendGrants();
  ++open_;
}

absl::Status TrainingRun::TrainUntilDone(LearnerService* service) {
  const uint64_t iteration_steps = config_.rollout().steps_per_iteration();
  next_save_ = saved_env_steps_ + config_.checkpoint().interval_steps();
  // Overlapped: the policy that is newest collects the next iteration while the one before is collected to its end and
  // trained on.
  const uint64_t most_open = config_.sync().mode() == v1::SYNC_MODE_OVERLAPPED ? 2 : 1;
  while (record_.env_steps < config_.total_steps()) {
    while (open_ == 0 || (open_ < most_open && record_.env_steps + open_ * iteration_steps < config_.total_steps())) {
      Open(service);
    }
    auto iteration = NextIteration(service);
    if (!iteration.ok()) return iteration.status();
    if (!*iteration) return absl::OkStatus();
    const StagedBatch& batch = *(*iteration)->batch;
    const Trainer::Collected data{batch.steps(),         batch.num_envs(),           batch.columns(),
                                  batch.samples(),       batch.episode_return,       batch.episode_length,
                                  batch.episode_metrics, (*iteration)->stage_seconds};
    if (absl::Status s =
            TrainIteration((*iteration)->batch, data, (*iteration)->policy_version, (*iteration)->env_state);
        !s.ok()) {
      return s;
    }
    --open_;
  }
  return absl::OkStatus();
}

void TrainingRun::KeepWaiting(LearnerService* service, absl::Duration* told) {
  service->SendGrants();
  if (MonotonicNow() - *told <= kTell) return;
  *told = MonotonicNow();
  if (collector_->actors() == 0) progress_->SetState(v1::RUN_STATE_WAITING_FOR_DATA);
  spdlog::info("waiting for trajectories from {}",
               collector_->actors() == 0 ? "actors: none is connected" : collector_->HoldersForPeople());
}

absl::StatusOr<std::optional<Collector::Iteration>> TrainingRun::NextIteration(LearnerService* service) {
  std::optional<Collector::Iteration> iteration;
  const absl::Duration begin = MonotonicNow();
  absl::Duration told = begin, met = begin;
  if (!starves_) arrived_ = begin;
  uint64_t batches = collector_->queued_batches();
  while (true) {
    const absl::Duration wait_from = MonotonicNow();
    if (!iteration) iteration = collector_->WaitForIteration(kLateTickets);
    metrics_->AddStage(Stage::kBarrier, MonotonicNow() - wait_from);
    collector_->CloseSilent(absl::Seconds(60));
    if (!expulsion_->status().ok()) return std::nullopt;
    if (group_ == nullptr) {
      if (shutdown_->signalled()) return std::nullopt;
      if (iteration) {
        decision_ = {RankDecision::Kind::kTrain, 0, iteration->batch->columns()};
        return iteration;
      }
      KeepWaiting(service, &told);
      continue;
    }
    if (!iteration) {
      KeepWaiting(service, &told);
      if (collector_->queued_batches() != batches) {
        arrived_ = MonotonicNow();
        starves_ = false;
      }
      batches = collector_->queued_batches();
      // A rank that starves comes at once: the others do not wait for it.
      if (!stopping() && !starves_ && MonotonicNow() - met < RankGroup::kRound) continue;
    }
    const absl::Duration meet_from = MonotonicNow();
    const auto decision = AgreeWithRanks(iteration);
    met = MonotonicNow();
    metrics_->AddStage(Stage::kBarrier, met - meet_from);
    if (!decision.ok()) return decision.status();
    if (decision->kind == RankDecision::Kind::kStop) return std::nullopt;
    if (decision->kind == RankDecision::Kind::kTrain) {
      decision_ = *decision;
      return iteration;
    }
    if (decision->kind == RankDecision::Kind::kGoOnShort && !iteration) {
      iteration = collector_->TakeWhatIsThere();
      if (!iteration) continue;  // Stopped.
      metrics_->CountShortfall();
      starves_ = true;
      spdlog::warn("rank {}: no trajectories for {}; going on with {} of its environments", options_.rank,
                   absl::FormatDuration(absl::Trunc(met - arrived_, absl::Seconds(1))), iteration->batch->num_envs());
    }
  }
}

absl::StatusOr<RankDecision> TrainingRun::AgreeWithRanks(const std::optional<Collector::Iteration>& iteration) {
  v1::RankRound mine;
  mine.set_ready(iteration.has_value());
  if (iteration) mine.set_columns(iteration->batch->columns());
  mine.set_idle_seconds(absl::ToDoubleSeconds(MonotonicNow() - arrived_));
  mine.set_stop(shutdown_->signalled());
  const auto rounds = group_->Meet(mine);
  if (!rounds.ok()) return rounds.status();
  return Decide(*rounds, group_->rank(), absl::Seconds(config_.learner().shortfall_seconds()));
}

absl::Status TrainingRun::TrainIteration(StagedBatch* batch, const Trainer::Collected& data, uint64_t policy_version,
                                         std::optional<v1::Tensor> env_state) {
  const absl::Duration begin = MonotonicNow(), begin_cpu = ThreadCpuTime();
  const double progress = static_cast<double>(record_.env_steps) / static_cast<double>(config_.total_steps());
  const int64_t offset = decision_.column_offset, total = decision_.total_columns;
  auto figures = batch != nullptr ? trainer_->Update(batch, progress, record_.iteration, offset, total)
                                  : trainer_->UpdateOnDevice(progress, record_.iteration, offset, total);
  if (!figures.ok()) return AsLostRank(figures.status());
  const absl::Duration updated = MonotonicNow();
  metrics_->AddStage(Stage::kUpdate, updated - begin);
  update_cpu_ += ThreadCpuTime() - begin_cpu;

  const auto steps = static_cast<uint64_t>(data.steps);
  ProgressTracker::Iteration counted;
  counted.policy_lag = record_.iteration + 1 - policy_version;
  counted.env_steps = steps * static_cast<uint64_t>(total) / agents_;
  ++record_.iteration;
  record_.env_steps += counted.env_steps;
  own_env_state_ = std::move(env_state);
  if (collector_ != nullptr) {
    collector_->Published(record_.iteration + 1);
    if (absl::Status s = Publish(); !s.ok()) return s;
    metrics_->AddStage(Stage::kPublish, MonotonicNow() - updated);
  }
  if (group_ != nullptr) metrics_->SetParametersDigest(trainer_->ParametersDigest());
  const uint64_t own_steps = steps * static_cast<uint64_t>(data.num_envs);
  if (collector_ != nullptr) {
    collector_->Trained(own_steps);
  } else {
    CountOnDevice(0, own_steps);
  }

  const bool saves = record_.env_steps >= next_save_ && record_.env_steps < config_.total_steps();
  if (saves && on_device()) {
    auto state = trainer_->EnvStateOnDevice();
    if (!state.ok()) return state.status();
    own_env_state_ = *std::move(state);
  }
  v1::RankIteration mine;
  *mine.mutable_account() = OwnAccount();
  mine.mutable_episode_return()->Add(data.episode_return.begin(), data.episode_return.end());
  mine.mutable_episode_length()->Add(data.episode_length.begin(), data.episode_length.end());
  mine.mutable_episode_metrics()->Add(data.episode_metrics.begin(), data.episode_metrics.end());
  *mine.mutable_stage_seconds() = data.stage_seconds;
  if (saves && own_env_state_) *mine.mutable_env_state() = *own_env_state_;
  const auto sum = AddUp(std::move(mine));
  if (!sum.ok()) return sum.status();
  record_.episodes += sum->episode_return.size();
  if (saves) record_.env_state = sum->env_state;
  counted.policy_version = record_.iteration + 1;
  counted.figures = *std::move(figures);
  counted.episode_returns = &sum->episode_return;
  counted.episode_lengths = &sum->episode_length;
  counted.samples = data.samples;
  counted.episode_metrics = &sum->episode_metrics;
  progress_->CountIteration(MonotonicNow(), counted);
  const double samples = counted.figures.at("epochs") * static_cast<double>(data.samples);
  metrics_->CountIteration(counted.policy_lag, static_cast<uint64_t>(samples),
                           static_cast<uint64_t>(counted.figures.at("gradient_steps")));
  metrics_->CountQuarantinedSteps(static_cast<uint64_t>(counted.figures.at("skipped_steps")));
  for (int64_t length : data.episode_length) metrics_->CountEpisode(length);
  const Trainer::Reduction reduction = trainer_->reduction();
  metrics_->SetReduction(static_cast<uint64_t>(reduction.all_reduces), static_cast<uint64_t>(reduction.bytes_sent),
                         reduction.all_reducing, reduction.exposed);
  LogIteration(sum->stage_seconds, counted, batch);
  if (saves) {
    // A failure is counted and shown; the next one may succeed.
    if (leads()) SaveCheckpoint().IgnoreError();
    next_save_ = record_.env_steps + config_.checkpoint().interval_steps();
  }
  return absl::OkStatus();
}

absl::Status TrainingRun::Publish() {
  auto snapshot = trainer_->Snapshot(record_.iteration + 1);
  if (snapshot.ok()) publisher_.Publish(*snapshot);
  return snapshot.status();
}

absl::Status TrainingRun::SaveCheckpoint() {
  if (record_.iteration == 0 || record_.env_steps == saved_env_steps_) return absl::OkStatus();
  const absl::Duration begin = MonotonicNow();
  record_.account = Account();
  auto saved = trainer_->Save(checkpoints_, record_);
  const absl::Duration duration = MonotonicNow() - begin;
  metrics_->CountCheckpoint(saved.ok(), duration, absl::Now());
  metrics_->AddStage(Stage::kCheckpoint, duration);
  if (!saved.ok()) {
    const std::string error = absl::StrCat("checkpoint not written: ", std::string(saved.status().message()));
    spdlog::error("{}", error);
    progress_->SetError(error);
    return absl::Status(saved.status().code(), error);
  }
  saved_env_steps_ = record_.env_steps;
  progress_->SetCheckpoint(saved->path, saved->digest);
  spdlog::info("checkpoint {} digest {}", saved->path, saved->digest);
  return absl::OkStatus();
}

}  // namespace skein
