// SPDX-License-Identifier: Apache-2.0
#include "learner/run/training_run.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "base/telemetry/log.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "learner/collect/fragment_shape.h"
#include "learner/collect/step_account.h"

namespace skein {
namespace {

using Stage = LearnerMetrics::Stage;

// How often tickets that are late are looked for while an iteration is waited for.
constexpr absl::Duration kLateTickets = absl::Milliseconds(20);
// How often people are told what is waited for.
constexpr absl::Duration kTell = absl::Seconds(5);

RankDecision SingleRank(int64_t columns) {
  RankDecision decision;
  decision.kind = RankDecision::Kind::kTrain;
  decision.total_columns = columns;
  return decision;
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
      life_(std::random_device()()),
      leads_(options.ranks == 1),
      publisher_(metrics),
      reports_(options.ranks == 1) {}

absl::Status TrainingRun::MakeTrainer() {
  v1::RunConfig config = config_;
  if (!options_.device.empty()) config.mutable_learner()->set_device(options_.device);
  auto trainer = Trainer::Make(config, spec_, group_ == nullptr ? nullptr : group_->collective(),
                               static_cast<int>(options_.local_rank));
  if (!trainer.ok()) return AsLostRank(trainer.status());
  trainer_ = *std::move(trainer);
  return absl::OkStatus();
}

absl::Status TrainingRun::GoOnFromCheckpoint() {
  if (options_.resume != ResumeMode::kNever) {
    auto resumed = trainer_->Resume(checkpoints_, options_.resume == ResumeMode::kMust);
    if (resumed.ok()) {
      record_ = resumed->record;
      saved_env_steps_ = record_.env_steps;
      checkpoint_ = resumed->checkpoint;
      for (const std::string& warning : resumed->warnings) spdlog::warn("{}", warning);
      metrics_->CountDamagedCheckpoints(resumed->warnings.size());
      spdlog::info("resumed from {} at {} env steps", resumed->checkpoint.path, record_.env_steps);
    } else if (resumed.status().code() != absl::StatusCode::kNotFound || options_.resume == ResumeMode::kMust) {
      return AsLostRank(resumed.status());
    }
  }
  next_save_ = saved_env_steps_ + config_.checkpoint().interval_steps();
  absl::MutexLock lock(&mu_);
  device_account_ = leads_ ? Settled(record_.account, 0) : v1::StepAccount();
  return absl::OkStatus();
}

absl::Status TrainingRun::Prepare() {
  auto env = MakeEnv(config_.env().id(), MakeEnvOptions(config_.env()));
  if (!env.ok()) return env.status();
  spec_ = (*env)->spec();
  agents_ = static_cast<uint64_t>(spec_.num_agents);
  if (absl::Status s = JoinGroup(); !s.ok()) return s;
  progress_ = std::make_unique<ProgressTracker>(config_.total_steps(), record_.env_steps, record_.iteration,
                                                record_.episodes, spec_.episode_metrics);
  if (!checkpoint_.path.empty()) progress_->SetCheckpoint(checkpoint_.path, checkpoint_.digest);
  if (absl::Status s = on_device() ? BeginOnDevice() : MakeCollector(); !s.ok()) return s;
  if (absl::Status s = OpenLogs(); !s.ok()) return s;
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status TrainingRun::OpenLogs() {
  if (!leads_ || metrics_log_.is_open()) return absl::OkStatus();
  metrics_log_.open(options_.run_directory + "/metrics.jsonl", std::ios::app);
  if (!metrics_log_) return absl::PermissionDeniedError(options_.run_directory + "/metrics.jsonl: cannot be written");
  auto event_log = EventLog::Open(options_.run_directory, record_.env_steps, absl::Now());
  if (event_log.ok()) {
    event_log_ = *std::move(event_log);
  } else {
    spdlog::warn("nothing for TensorBoard: {}", std::string(event_log.status().message()));
  }
  return absl::OkStatus();
}

uint32_t TrainingRun::AsyncFragments() const {
  const v1::RolloutConfig& rollout = config_.rollout();
  const int64_t fragments = rollout.steps_per_iteration() / fragment_steps_;
  // In proportion to the share, so that ranks whose actors are equally fast are done at the same time.
  return static_cast<uint32_t>(std::max<int64_t>(1, fragments * share_.num_envs / rollout.num_envs()));
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
  fragment_steps_ = shape->steps * shape->num_envs;
  const int64_t fragments = rollout.steps_per_iteration() / fragment_steps_;
  if (config_.sync().mode() == v1::SYNC_MODE_ASYNC) {
    collect.async = Collector::Async{AsyncFragments(), config_.sync().max_policy_lag()};
  } else {
    collect.fragments_per_block = static_cast<uint32_t>(fragments * shape->num_envs / rollout.num_envs());
  }
  // Above the ids of any earlier process of this run: those count up from an earlier millisecond.
  collect.first_ticket_id = static_cast<uint64_t>(absl::ToUnixMillis(absl::Now())) << 20;
  collect.account = OwnAccount();
  collect.env_state = own_env_state_;
  collector_ = std::make_unique<Collector>(collect, metrics_);
  return absl::OkStatus();
}

absl::Status TrainingRun::Run(LearnerService* service) {
  if (absl::Status s = Prepare(); !s.ok()) return s;
  absl::Status trained;
  if (on_device()) {
    service->ServeNobody();
    trained = TrainWithThoseThere(service);
  } else {
    if (absl::Status s = Publish(); !s.ok()) return s;
    service->Serve(run_id_, collector_.get(), &publisher_, absl::Seconds(config_.coordinator().lease_seconds()));
    shutdown_->OnSignal([this] { collector_->Stop(); });
    trained = TrainWithThoseThere(service);
    shutdown_->OnSignal({});
    collector_->Stop();
  }
  // Not over for actors are a run whose ranks do not meet, which start again and resume, and one whose coordinator has
  // expelled this learner: what becomes of actors then, it tells them itself.
  const bool expelled = !expulsion_->status().ok() && record_.env_steps < config_.total_steps();
  const bool over = !absl::IsAborted(trained) && !expelled;
  if (over) service->Finish();
  publisher_.Finish();
  if (over) service->WaitUntilIdle(absl::Seconds(2));
  if (collector_ != nullptr) collector_->CloseBooks();
  if (trained.ok() && group_ != nullptr && !expulsion_->status().ok()) {
    record_.env_state.reset();  // Where the others' environments are is not known.
  } else if (trained.ok()) {
    trained = EndTogether();
  }
  if (trained.ok() && leads_) trained = SaveCheckpoint();  // The last one: without it the run is not finished.
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
    const Columns& batch = *(*iteration)->batch;
    Trainer::Collected data{.steps = batch.steps(), .num_envs = batch.num_envs(), .columns = batch.columns()};
    data.samples = batch.samples();
    data.stage_seconds = (*iteration)->stage_seconds;
    const auto returns = batch.values<float>("episode_return"), metrics = batch.values<float>("episode_metrics");
    const auto lengths = batch.values<int64_t>("episode_length");
    data.episode_return.assign(returns.begin(), returns.end());
    data.episode_length.assign(lengths.begin(), lengths.end());
    data.episode_metrics.assign(metrics.begin(), metrics.end());
    if (absl::Status s =
            TrainIteration((*iteration)->batch, data, (*iteration)->policy_version, (*iteration)->env_state);
        !s.ok()) {
      return s;
    }
    --open_;
    if (decision_.admits) return absl::OkStatus();
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
        decision_ = SingleRank(iteration->batch->columns());
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
    const auto decision =
        AgreeWithRanks(iteration ? std::optional<int64_t>(iteration->batch->columns()) : std::nullopt);
    met = MonotonicNow();
    metrics_->AddStage(Stage::kBarrier, met - meet_from);
    if (!decision.ok()) return decision.status();
    decision_ = *decision;
    if (decision->kind == RankDecision::Kind::kStop || decision->kind == RankDecision::Kind::kAdmit)
      return std::nullopt;
    if (decision->kind == RankDecision::Kind::kTrain) return iteration;
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

absl::Status TrainingRun::TrainIteration(Columns* batch, const Trainer::Collected& data, uint64_t policy_version,
                                         std::optional<v1::Tensor> env_state) {
  const absl::Duration begin = MonotonicNow(), begin_cpu = ThreadCpuTime();
  const double progress = static_cast<double>(record_.env_steps) / static_cast<double>(config_.total_steps());
  const int64_t offset = decision_.column_offset, total = decision_.total_columns;
  const auto steps = static_cast<uint64_t>(data.steps);
  const uint64_t own_steps = steps * static_cast<uint64_t>(data.num_envs);
  if (group_ != nullptr) {
    if (absl::Status s = KeepState(); !s.ok()) return s;
    own_steps_ = own_steps;
    in_flight_.clear();
    for (int64_t columns : decision_.columns) in_flight_.push_back(steps * static_cast<uint64_t>(columns) / agents_);
    in_update_ = true;
  }
  auto stats = batch != nullptr ? trainer_->Update(batch, progress, record_.iteration, offset, total)
                                : trainer_->UpdateOnDevice(progress, record_.iteration, offset, total);
  if (!stats.ok()) return AsLostRank(stats.status());
  in_update_ = false;
  const absl::Duration updated = MonotonicNow();
  metrics_->AddStage(Stage::kUpdate, updated - begin);
  update_cpu_ += ThreadCpuTime() - begin_cpu;

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
  CountTrained(own_steps);

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
  // Of several ranks always: whoever is left can then go on with a lost one's environments.
  if (own_env_state_ && (saves || (group_ != nullptr && !on_device()))) *mine.mutable_env_state() = *own_env_state_;
  const auto sum = AddUp(std::move(mine));
  if (!sum.ok()) return sum.status();
  record_.episodes += sum->episode_return.size();
  if (saves || sum->env_state) record_.env_state = sum->env_state;
  counted.policy_version = record_.iteration + 1;
  counted.stats = *std::move(stats);
  counted.episode_returns = &sum->episode_return;
  counted.episode_lengths = &sum->episode_length;
  counted.samples = data.samples;
  counted.episode_metrics = &sum->episode_metrics;
  progress_->CountIteration(MonotonicNow(), counted);
  metrics_->CountIteration(counted.policy_lag, static_cast<uint64_t>(data.samples), counted.stats);
  for (int64_t length : data.episode_length) metrics_->CountEpisode(length);
  const Trainer::Reduction reduction = trainer_->reduction();
  metrics_->SetReduction(static_cast<uint64_t>(reduction.all_reduces), static_cast<uint64_t>(reduction.bytes_sent),
                         reduction.all_reducing, reduction.exposed);
  LogIteration(sum->stage_seconds, counted, batch);
  if (saves) {
    // A failure is counted and shown; the next one may succeed.
    if (leads_) SaveCheckpoint().IgnoreError();
    next_save_ = record_.env_steps + config_.checkpoint().interval_steps();
  }
  return absl::OkStatus();
}

void TrainingRun::CountTrained(uint64_t own_steps) {
  if (collector_ != nullptr) {
    collector_->Trained(own_steps);
  } else {
    CountOnDevice(0, own_steps);
  }
}

absl::Status TrainingRun::Publish() {
  if (record_.iteration < published_) return absl::OkStatus();  // As long as nobody has a newer state.
  published_ = record_.iteration + 1;
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
  checkpoint_ = *saved;
  progress_->SetCheckpoint(saved->path, saved->digest);
  spdlog::info("checkpoint {} digest {}", saved->path, saved->digest);
  return absl::OkStatus();
}

}  // namespace skein
