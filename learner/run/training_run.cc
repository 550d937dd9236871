// SPDX-License-Identifier: Apache-2.0
#include "learner/run/training_run.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "learner/collect/step_account.h"
#include "learner/run/device_iterations.h"

namespace skein {
namespace {

using Stage = LearnerMetrics::Stage;

// How many times in a row a group may be formed that finishes no iteration.
constexpr int kFruitless = 10;

void AddSeconds(const v1::StageSeconds& from, v1::StageSeconds* to) {
  to->set_env_step(to->env_step() + from.env_step());
  to->set_inference(to->inference() + from.inference());
  to->set_build(to->build() + from.build());
  to->set_wait(to->wait() + from.wait());
}

void Tell(const TicketState& state, v1::RankIteration* part) {
  if (state.env_state) *part->mutable_env_state() = *state.env_state;
  if (state.policy_state) *part->mutable_policy_state() = *state.policy_state;
}

TicketState StateOf(const v1::RankIteration& part) {
  TicketState state;
  if (part.has_env_state()) state.env_state = part.env_state();
  if (part.has_policy_state()) state.policy_state = part.policy_state();
  return state;
}

RunCallbacks::Options CallbacksOf(const RunContext& context, std::function<void(const std::string&)> warn) {
  RunCallbacks::Options options = CallbackOptions(context.config, context.options.run_directory);
  options.stopping = [&context] { return context.stopping(); };
  options.warn = std::move(warn);
  return options;
}

const char* NameOf(v1::RunState state) {
  return state == v1::RUN_STATE_FINISHED ? "finished" : state == v1::RUN_STATE_STOPPED ? "stopped" : "failed";
}

}  // namespace

TrainingRun::TrainingRun(const LearnerOptions& options, CoordinatorClient* coordinator, LearnerMetrics* metrics,
                         ShutdownSignal* shutdown, const Cancellation* expulsion)
    : context_{options, coordinator, metrics, shutdown, expulsion},
      accounts_(metrics),
      callbacks_(context_.config,
                 CallbacksOf(context_, [this](const std::string& text) { report_.progress().AddWarning(text); })),
      report_(context_, accounts_, &callbacks_),
      phases_(context_.config),
      ranks_(context_, [this](const std::string& missing) { report_.SetBlocked(missing); }),
      checkpoints_(context_) {}

uint64_t TrainingRun::Goal() const {
  const uint64_t total = context_.config.total_steps(), stop = context_.options.stop_at_step;
  return stop == 0 ? total : std::min(stop, total);
}

absl::Status TrainingRun::MakeTrainer() {
  v1::RunConfig config = context_.config;
  if (!context_.options.device.empty()) config.mutable_learner()->set_device(context_.options.device);
  RankGroup* const group = ranks_.group();
  auto trainer = Trainer::Make(config, spec_, group == nullptr ? nullptr : group->collective(),
                               static_cast<int>(context_.options.local_rank));
  if (!trainer.ok()) return AsLostRank(trainer.status());
  trainer_ = *std::move(trainer);
  return absl::OkStatus();
}

absl::Status TrainingRun::Prepare(LearnerService* service) {
  const std::string& env_id = context_.config.env().id();
  const EnvOptions env_options = MakeEnvOptions(context_.config.env());
  auto spec = FindEnvSpec(env_id, env_options);
  if (!spec.ok()) return spec.status();
  spec_ = *std::move(spec);
  if (spec_.relocatable) {  // Before the actors: whether its files can be read. What cannot move need not be here.
    if (absl::Status s = MakeEnv(env_id, env_options).status(); !s.ok()) return s;
  }
  if (absl::Status s = JoinGroup(); !s.ok()) return s;
  if (context_.on_device()) {
    on_device_ = std::make_unique<DeviceIterations>(context_, spec_.num_agents, &ranks_, &accounts_);
    source_ = on_device_.get();
    if (absl::Status s = TakeShare(); !s.ok()) return s;
  } else {
    auto collected = CollectedIterations::Make(context_, share_, own_state_, &ranks_, &accounts_, &report_, service);
    if (!collected.ok()) return collected.status();
    collected_ = *std::move(collected);
    source_ = collected_.get();
  }
  if (ranks_.leads()) {
    if (absl::Status s = report_.OpenLogs(record_); !s.ok()) return s;
  }
  report_.Begin(record_, checkpoints_.newest(), spec_, trainer_->WatchRules());
  return phases_.Enter(record_, trainer_.get(), &report_.progress());
}

absl::Status TrainingRun::Run(LearnerService* service) {
  if (absl::Status s = Prepare(service); !s.ok()) return s;
  if (absl::Status s = source_->Publish(record_.iteration, *trainer_); !s.ok()) return s;
  absl::Status trained;
  if (collected_ == nullptr) {
    service->ServeNoActors();
    trained = Train();
  } else {
    collected_->Serve();
    context_.shutdown->OnSignal([this] { collected_->Stop(); });
    trained = Train();
    context_.shutdown->OnSignal({});
    collected_->Stop();
  }
  // The run is not over for actors if the ranks do not meet (they start again and resume), or if the coordinator has
  // expelled this learner (it then tells the actors itself what to do).
  const bool expelled = context_.expelled() && record_.env_steps < context_.config.total_steps();
  const bool over = !absl::IsAborted(trained) && !expelled;
  if (collected_ != nullptr) {
    collected_->Finish(over);
  } else if (over) {
    service->Finish();
  }
  return End(std::move(trained));
}

absl::Status TrainingRun::End(absl::Status trained) {
  if (trained.ok() && ranks_.group() != nullptr && context_.expelled()) {
    record_.state = {};  // Where the others' environments are is not known.
  } else if (trained.ok()) {
    trained = EndTogether();
  }
  if (trained.ok() && ranks_.leads()) trained = SaveCheckpoint();  // Without it the run is not finished.
  const bool reached = record_.env_steps >= context_.config.total_steps();
  if (trained.ok() && !reached) trained = context_.expulsion->status();
  const v1::RunState state = !trained.ok() ? v1::RUN_STATE_FAILED
                             : reached     ? v1::RUN_STATE_FINISHED
                                           : v1::RUN_STATE_STOPPED;
  if (!absl::IsAborted(trained)) callbacks_.End(NameOf(state));
  if (trained.ok()) trained = callbacks_.status();
  ProgressTracker& progress = report_.progress();
  if (!trained.ok()) progress.SetError(std::string(trained.message()));
  if (absl::IsAborted(trained)) return trained;
  progress.SetState(trained.ok() ? state : v1::RUN_STATE_FAILED);
  return trained;
}

absl::Status TrainingRun::Train() {
  int fruitless = 0;
  while (true) {
    const uint64_t before = record_.iteration;
    decision_ = {};
    const absl::Status trained = TrainUntilDone();
    const bool admits = trained.ok() && record_.env_steps < Goal() &&
                        (decision_.admits || decision_.kind == RankDecision::Kind::kAdmit);
    if (ranks_.group() == nullptr || !(admits || absl::IsAborted(trained))) return trained;
    fruitless = record_.iteration > before ? 0 : fruitless + 1;
    if (fruitless > kFruitless && !trained.ok()) return trained;
    const absl::Status reformed = Reform(admits ? "a rank has come" : std::string(trained.message()));
    if (!reformed.ok() || ranks_.group() == nullptr) return reformed;
  }
}

absl::Status TrainingRun::TrainUntilDone() {
  while (record_.env_steps < Goal()) {
    if (absl::Status s = FollowCallbacks(); !s.ok() || callbacks_.stops()) return s;
    auto next = source_->Next(record_, trainer_.get());
    if (!next.ok()) return next.status();
    decision_ = next->decision;
    if (!next->iteration) return absl::OkStatus();
    if (absl::Status s = TrainIteration(*next->iteration); !s.ok()) return s;
    if (decision_.admits) return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status TrainingRun::FollowCallbacks() {
  if (!callbacks_.configured()) return absl::OkStatus();
  if (ranks_.leads()) {
    callbacks_.Begin({record_.env_steps, record_.iteration, record_.changes, checkpoints_.newest().path});
  } else {
    callbacks_.Release();
  }
  v1::RankIteration mine;
  mine.set_changes(callbacks_.TakeChanges(record_.changes));
  mine.set_stops(callbacks_.stops());
  const auto told = ranks_.HearFirst(std::move(mine));
  if (!told.ok()) return told.status();
  record_.changes = told->changes();
  callbacks_.Follow(told->stops());
  return absl::OkStatus();
}

absl::StatusOr<UpdateStats> TrainingRun::Update(const IterationSource::Iteration& iteration) {
  const absl::Duration begin = MonotonicNow(), begin_cpu = ThreadCpuTime();
  const double progress = static_cast<double>(record_.env_steps) / static_cast<double>(context_.config.total_steps());
  const int64_t offset = decision_.column_offset, total = decision_.total_columns;
  if (absl::Status s = phases_.Enter(record_, trainer_.get(), &report_.progress()); !s.ok()) return s;
  if (ranks_.group() != nullptr) {
    if (absl::Status s = KeepState(); !s.ok()) return s;
    own_steps_ = iteration.data.env_steps;
    std::vector<uint64_t> steps;
    for (int64_t columns : decision_.columns) {
      steps.push_back(static_cast<uint64_t>(iteration.data.steps) * static_cast<uint64_t>(columns) /
                      static_cast<uint64_t>(spec_.num_agents));
    }
    rank_accounts_.BeginUpdate(std::move(steps));
  }
  auto stats = iteration.batch != nullptr
                   ? trainer_->Update(iteration.batch, progress, record_.iteration, offset, total)
                   : trainer_->UpdateOnDevice(progress, record_.iteration, offset, total);
  if (!stats.ok()) return AsLostRank(stats.status());
  rank_accounts_.EndUpdate();
  context_.metrics->AddStage(Stage::kUpdate, MonotonicNow() - begin);
  report_.AddUpdateCpu(ThreadCpuTime() - begin_cpu);
  return stats;
}

absl::Status TrainingRun::TrainIteration(const IterationSource::Iteration& iteration) {
  const Trainer::Collected& data = iteration.data;
  auto stats = Update(iteration);
  if (!stats.ok()) return stats.status();

  ProgressTracker::Iteration counted;
  counted.policy_lag = record_.iteration + 1 - iteration.policy_version;
  const bool several_ranks = ranks_.group() != nullptr;
  counted.env_steps = several_ranks
                          ? static_cast<uint64_t>(data.steps) * static_cast<uint64_t>(decision_.total_columns) /
                                static_cast<uint64_t>(spec_.num_agents)
                          : data.env_steps;
  ++record_.iteration;
  record_.env_steps += counted.env_steps;
  own_state_ = iteration.state;
  if (absl::Status s = source_->Publish(record_.iteration, *trainer_); !s.ok()) return s;
  LearnerMetrics& metrics = *context_.metrics;
  if (several_ranks) metrics.SetParametersDigest(trainer_->ParametersDigest());
  source_->Trained(data.env_steps);

  const bool saves = checkpoints_.Due(record_.env_steps);
  if (saves) {
    if (absl::Status s = ReadState(); !s.ok()) return s;
  }
  v1::RankIteration mine;
  *mine.mutable_account() = accounts_.own();
  mine.mutable_episode_return()->Add(data.episode_return.begin(), data.episode_return.end());
  mine.mutable_episode_length()->Add(data.episode_length.begin(), data.episode_length.end());
  mine.mutable_episode_metrics()->Add(data.episode_metrics.begin(), data.episode_metrics.end());
  mine.set_failed_episodes(data.failed_episodes);
  *mine.mutable_stage_seconds() = data.stage_seconds;
  // Always sent with several ranks, if known: the remaining ranks can then continue a lost one's environments.
  if (saves || several_ranks) Tell(own_state_, &mine);
  const auto sum = AddUp(std::move(mine));
  if (!sum.ok()) return sum.status();
  record_.episodes += sum->episode_return.size();
  if (saves || !sum->state.empty()) record_.state = sum->state;

  counted.policy_version = record_.iteration + 1;
  counted.stats = *std::move(stats);
  counted.episode_returns = &sum->episode_return;
  counted.episode_lengths = &sum->episode_length;
  counted.samples = data.samples;
  counted.episode_metrics = &sum->episode_metrics;
  counted.failed_episodes = sum->failed_episodes;
  report_.progress().CountIteration(MonotonicNow(), counted);
  record_.last_episodes = report_.progress().LastEpisodes();
  metrics.CountIteration(counted.policy_lag, static_cast<uint64_t>(data.samples), counted.stats);
  for (int64_t length : data.episode_length) metrics.CountEpisode(length);
  metrics.CountFailedEpisodes(data.failed_episodes);
  const Trainer::Reduction reduction = trainer_->reduction();
  metrics.SetReduction(static_cast<uint64_t>(reduction.all_reduces), static_cast<uint64_t>(reduction.bytes_sent),
                       reduction.all_reducing, reduction.exposed);
  report_.LogIteration(record_, counted, sum->stage_seconds, ranks_.leads(), several_ranks, *trainer_, iteration.batch);
  record_.changes = callbacks_.TakeChanges(record_.changes);
  if (saves) {
    // A failure is counted and shown; the next one may succeed.
    if (ranks_.leads()) {
      const absl::Status saved = SaveCheckpoint();
      if (!saved.ok() && checkpoints_.failures().hopeless()) return saved;
    }
    checkpoints_.Schedule(record_.env_steps);
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainingRun::Sum> TrainingRun::AddUp(v1::RankIteration mine) {
  std::vector<v1::RankIteration> all;
  if (ranks_.group() == nullptr) {
    all.push_back(std::move(mine));
  } else {
    auto gathered = ranks_.group()->Gather(mine);
    if (!gathered.ok()) return gathered.status();
    all = *std::move(gathered);
  }
  Sum sum;
  v1::StepAccount others;
  std::vector<v1::StepAccount> told;
  std::vector<TicketState> states;
  std::vector<const TicketState*> parts;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const v1::RankIteration& part = all[rank];
    told.push_back(part.account());
    if (static_cast<int>(rank) != ranks_.place()) Add(part.account(), &others);
    sum.episode_return.insert(sum.episode_return.end(), part.episode_return().begin(), part.episode_return().end());
    sum.episode_length.insert(sum.episode_length.end(), part.episode_length().begin(), part.episode_length().end());
    sum.episode_metrics.insert(sum.episode_metrics.end(), part.episode_metrics().begin(), part.episode_metrics().end());
    sum.failed_episodes += part.failed_episodes();
    AddSeconds(part.stage_seconds(), &sum.stage_seconds);
    states.push_back(StateOf(part));
  }
  for (const TicketState& state : states) parts.push_back(&state);
  sum.state = Join(parts);
  rank_accounts_.Tell(std::move(told));
  accounts_.SetOthers(others);
  return sum;
}

absl::Status TrainingRun::ReadState() {
  auto state = source_->State(*trainer_);
  if (!state.ok()) return state.status();
  if (*state) own_state_ = **std::move(state);
  return absl::OkStatus();
}

absl::Status TrainingRun::AddUpForLastCheckpoint() {
  if (record_.iteration > 0) {
    if (absl::Status s = ReadState(); !s.ok()) return s;
  }
  v1::RankIteration mine;
  *mine.mutable_account() = accounts_.own();
  Tell(own_state_, &mine);
  const auto sum = AddUp(std::move(mine));
  if (sum.ok()) record_.state = sum->state;
  return sum.status();
}

absl::Status TrainingRun::SaveCheckpoint() {
  record_.account = accounts_.total();
  report_.SyncLogs();
  const absl::Status saved = checkpoints_.Save(*trainer_, record_);
  if (!saved.ok()) {
    report_.progress().SetError(std::string(saved.message()));
    if (checkpoints_.failures().length() == 1) {
      report_.progress().AddWarning(
          absl::StrCat(std::string(saved.message()), "; training goes on without one, and ends with code 74 if ",
                       FailureStreak::kFailures, " in a row cannot be written over more than ",
                       absl::FormatDuration(FailureStreak::kLasting), ": make room, or mend the disk"));
    }
  } else if (const Trainer::Saved& newest = checkpoints_.newest(); !newest.path.empty()) {
    report_.progress().SetCheckpoint(newest.path, newest.digest);
    callbacks_.Checkpoint(newest.path, newest.digest, record_.env_steps);
  }
  return saved;
}

}  // namespace skein
