// SPDX-License-Identifier: Apache-2.0
#include "learner/learner.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "base/clock.h"
#include "base/coordinator_client.h"
#include "base/grpc_transport.h"
#include "base/http_server.h"
#include "base/log.h"
#include "base/resource_sampler.h"
#include "env/registry.h"
#include "learner/collector.h"
#include "learner/fragment_shape.h"
#include "learner/metrics.h"
#include "learner/policy_publisher.h"
#include "learner/progress.h"
#include "learner/service.h"
#include "learner/trainer.h"
#include "nlohmann/json.hpp"
#include "prometheus/registry.h"

namespace skein {
namespace {

using Stage = LearnerMetrics::Stage;

// How often tickets that are late are looked for while an iteration is waited for.
constexpr absl::Duration kLateTickets = absl::Milliseconds(20);

// One run of the training loop, from the configuration to the last checkpoint.
class TrainingRun {
 public:
  TrainingRun(const LearnerOptions& options, const v1::RunConfig& config, std::string run_id, LearnerMetrics* metrics,
              ShutdownSignal* shutdown, const Cancellation* expulsion)
      : options_(options),
        config_(config),
        run_id_(std::move(run_id)),
        metrics_(metrics),
        shutdown_(shutdown),
        expulsion_(expulsion),
        checkpoints_(options.run_directory + "/checkpoints") {}

  absl::Status Run(LearnerService* service);
  // Callable from any thread at any time.
  void FillReport(v1::MemberReport* report, v1::RunProgress* progress) const;

 private:
  absl::Status Prepare();
  absl::Status TrainUntilDone(LearnerService* service);
  absl::Status TrainIteration(const Collector::Iteration& iteration);
  absl::Status Publish();
  absl::Status SaveCheckpoint();
  void LogIteration(const Collector::Iteration& iteration, const ProgressTracker::Iteration& counted);
  bool overlapped() const { return config_.sync().mode() == v1::SYNC_MODE_OVERLAPPED; }

  const LearnerOptions& options_;
  const v1::RunConfig config_;
  const std::string run_id_;
  LearnerMetrics* const metrics_;
  ShutdownSignal* const shutdown_;
  const Cancellation* const expulsion_;
  const std::string checkpoints_;

  // Of the training thread.
  RunRecord record_;
  uint64_t saved_env_steps_ = 0;
  absl::Duration started_ = MonotonicNow();
  absl::Duration update_cpu_;  // Of the training thread, in updates.
  std::ofstream metrics_log_;
  std::unique_ptr<Trainer> trainer_;

  PolicyPublisher publisher_{metrics_};
  // Set before the service serves them.
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<ProgressTracker> progress_;
  std::atomic<bool> prepared_{false};
};

absl::Status TrainingRun::Prepare() {
  auto shape = MakeFragmentShape(config_);
  if (!shape.ok()) return shape.status();
  auto env = MakeEnv(config_.env().id());
  if (!env.ok()) return env.status();
  auto trainer = Trainer::Make(config_, (*env)->spec());
  if (!trainer.ok()) return trainer.status();
  trainer_ = *std::move(trainer);

  if (options_.resume != ResumeMode::kNever) {
    auto resumed = trainer_->Resume(checkpoints_);
    if (resumed.ok()) {
      record_ = resumed->record;
      saved_env_steps_ = record_.env_steps;
      for (const std::string& warning : resumed->warnings) spdlog::warn("{}", warning);
      spdlog::info("resumed from {} at {} env steps", resumed->checkpoint.path, record_.env_steps);
    } else if (resumed.status().code() != absl::StatusCode::kNotFound || options_.resume == ResumeMode::kMust) {
      return resumed.status();
    }
    progress_ = std::make_unique<ProgressTracker>(config_.total_steps(), record_.env_steps, record_.iteration,
                                                  record_.episodes);
    if (resumed.ok()) progress_->SetCheckpoint(resumed->checkpoint.path, resumed->checkpoint.digest);
  } else {
    progress_ = std::make_unique<ProgressTracker>(config_.total_steps(), 0, 0, 0);
  }

  Collector::Options collect;
  collect.run_id = run_id_;
  collect.shape = *shape;
  const v1::RolloutConfig& rollout = config_.rollout();
  collect.num_envs = rollout.num_envs();
  const int64_t fragments = rollout.steps_per_iteration() / (shape->steps * shape->num_envs);
  if (config_.sync().mode() == v1::SYNC_MODE_ASYNC) {
    collect.async = Collector::Async{static_cast<uint32_t>(fragments), config_.sync().max_policy_lag()};
  } else {
    collect.fragments_per_block = static_cast<uint32_t>(fragments * shape->num_envs / rollout.num_envs());
  }
  // Above the ids of any earlier process of this run: those count up from an earlier millisecond.
  collect.first_ticket_id = static_cast<uint64_t>(absl::ToUnixMillis(absl::Now())) << 20;
  collect.account = record_.account;
  collect.env_state = record_.env_state;
  collector_ = std::make_unique<Collector>(collect, metrics_);
  metrics_log_.open(options_.run_directory + "/metrics.jsonl", std::ios::app);
  if (!metrics_log_) return absl::PermissionDeniedError(options_.run_directory + "/metrics.jsonl: cannot be written");
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status TrainingRun::Run(LearnerService* service) {
  if (absl::Status s = Prepare(); !s.ok()) return s;
  if (absl::Status s = Publish(); !s.ok()) return s;
  service->Serve(run_id_, collector_.get(), &publisher_);
  shutdown_->OnSignal([this] { collector_->Stop(); });

  absl::Status trained = TrainUntilDone(service);

  shutdown_->OnSignal({});
  collector_->Stop();
  service->Finish();
  publisher_.Finish();
  service->WaitUntilIdle(absl::Seconds(2));
  record_.account = collector_->CloseBooks();
  if (trained.ok()) trained = SaveCheckpoint();  // The last one: without it the run is not finished.
  if (trained.ok() && record_.env_steps < config_.total_steps()) trained = expulsion_->status();
  const bool finished = trained.ok() && record_.env_steps >= config_.total_steps();
  if (!trained.ok()) progress_->SetError(std::string(trained.message()));
  progress_->SetState(finished ? v1::RUN_STATE_FINISHED : trained.ok() ? v1::RUN_STATE_STOPPED : v1::RUN_STATE_FAILED);
  return trained;
}

absl::Status TrainingRun::TrainUntilDone(LearnerService* service) {
  const uint64_t iteration_steps = config_.rollout().steps_per_iteration();
  uint64_t next_save = saved_env_steps_ + config_.checkpoint().interval_steps();
  bool open = false;
  absl::Duration waiting_since = MonotonicNow();
  while (record_.env_steps < config_.total_steps()) {
    if (!open) {
      collector_->OpenIteration(record_.iteration + 1);
      service->SendGrants();
      open = true;
    }
    const absl::Duration wait_from = MonotonicNow();
    auto iteration = collector_->WaitForIteration(kLateTickets);
    metrics_->AddStage(Stage::kBarrier, MonotonicNow() - wait_from);
    collector_->CloseSilent(absl::Seconds(60));
    if (shutdown_->signalled() || !expulsion_->status().ok()) return absl::OkStatus();
    if (!iteration) {
      service->SendGrants();
      if (MonotonicNow() - waiting_since > absl::Seconds(5)) {
        if (collector_->actors() == 0) progress_->SetState(v1::RUN_STATE_WAITING_FOR_DATA);
        spdlog::info("waiting for trajectories from {}",
                     collector_->actors() == 0 ? "actors: none is connected" : collector_->HoldersForPeople());
        waiting_since = MonotonicNow();
      }
      continue;
    }
    open = false;
    if (overlapped() && record_.env_steps + iteration_steps < config_.total_steps()) {
      // The policy that is newest now collects the next iteration while this one is trained on.
      collector_->OpenIteration(record_.iteration + 1);
      service->SendGrants();
      open = true;
    }
    if (absl::Status s = TrainIteration(*iteration); !s.ok()) return s;
    if (record_.env_steps >= next_save && record_.env_steps < config_.total_steps()) {
      // A failure is counted and shown; the next one may succeed.
      SaveCheckpoint().IgnoreError();
      next_save = record_.env_steps + config_.checkpoint().interval_steps();
    }
    waiting_since = MonotonicNow();
  }
  return absl::OkStatus();
}

absl::Status TrainingRun::TrainIteration(const Collector::Iteration& iteration) {
  const absl::Duration begin = MonotonicNow(), begin_cpu = ThreadCpuTime();
  const double progress = static_cast<double>(record_.env_steps) / static_cast<double>(config_.total_steps());
  auto figures = trainer_->Update(iteration.batch, progress, record_.iteration);
  if (!figures.ok()) return figures.status();
  const absl::Duration updated = MonotonicNow();
  metrics_->AddStage(Stage::kUpdate, updated - begin);
  update_cpu_ += ThreadCpuTime() - begin_cpu;

  ProgressTracker::Iteration counted;
  counted.policy_lag = record_.iteration + 1 - iteration.policy_version;
  counted.env_steps = config_.rollout().steps_per_iteration();
  ++record_.iteration;
  record_.env_steps += counted.env_steps;
  record_.episodes += iteration.batch->episode_return.size();
  record_.env_state = iteration.env_state;
  collector_->Published(record_.iteration + 1);
  if (absl::Status s = Publish(); !s.ok()) return s;
  metrics_->AddStage(Stage::kPublish, MonotonicNow() - updated);

  counted.policy_version = record_.iteration + 1;
  counted.figures = *std::move(figures);
  counted.episode_returns = &iteration.batch->episode_return;
  counted.episode_lengths = &iteration.batch->episode_length;
  progress_->CountIteration(MonotonicNow(), counted);
  collector_->Trained(counted.env_steps);
  const double samples =
      counted.figures.at("epochs") * static_cast<double>(iteration.batch->steps() * iteration.batch->columns());
  metrics_->CountIteration(counted.policy_lag, static_cast<uint64_t>(samples),
                           static_cast<uint64_t>(counted.figures.at("gradient_steps")));
  for (int64_t length : iteration.batch->episode_length) metrics_->CountEpisode(length);
  LogIteration(iteration, counted);
  return absl::OkStatus();
}

void TrainingRun::LogIteration(const Collector::Iteration& iteration, const ProgressTracker::Iteration& counted) {
  v1::RunProgress progress;
  FillReport(nullptr, &progress);
  metrics_->SetProgress(progress);
  nlohmann::json line;
  line["iteration"] = record_.iteration;
  line["env_steps"] = record_.env_steps;
  line["seconds"] = absl::ToDoubleSeconds(MonotonicNow() - started_);
  line["policy_lag"] = counted.policy_lag;
  line["episodes"] = progress.episodes();
  line["episode_return_mean"] = progress.mean_episode_return();  // NaN becomes null.
  line["env_steps_per_second"] = progress.env_steps_per_second_10s();
  for (const auto& [name, value] : counted.figures) line["update"][name] = value;
  for (const auto& [name, value] : progress.stage_seconds()) line["learner_stage_seconds"][name] = value;
  line["learner_stage_seconds"]["update_cpu"] = absl::ToDoubleSeconds(update_cpu_);
  const v1::StageSeconds& actors = iteration.stage_seconds;
  line["actor_stage_seconds"] = {{"env_step", actors.env_step()},
                                 {"inference", actors.inference()},
                                 {"build", actors.build()},
                                 {"wait", actors.wait()}};
  metrics_log_ << line.dump() << std::endl;
}

absl::Status TrainingRun::Publish() {
  auto snapshot = trainer_->Snapshot(record_.iteration + 1);
  if (snapshot.ok()) publisher_.Publish(*snapshot);
  return snapshot.status();
}

absl::Status TrainingRun::SaveCheckpoint() {
  if (record_.iteration == 0 || record_.env_steps == saved_env_steps_) return absl::OkStatus();
  const absl::Duration begin = MonotonicNow();
  record_.account = collector_->account();
  auto saved = trainer_->Save(checkpoints_, record_);
  metrics_->CountCheckpoint(saved.ok());
  metrics_->AddStage(Stage::kCheckpoint, MonotonicNow() - begin);
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

void TrainingRun::FillReport(v1::MemberReport* report, v1::RunProgress* progress) const {
  if (!prepared_) {
    progress->set_state(v1::RUN_STATE_STARTING);
    progress->set_target_env_steps(config_.total_steps());
    progress->set_mean_episode_return(std::numeric_limits<double>::quiet_NaN());
    progress->set_eta_seconds(-1);
    return;
  }
  *progress = progress_->Snapshot(MonotonicNow());
  *progress->mutable_account() = collector_->account();
  progress->set_queued_batches(collector_->queued_batches());
  for (const auto& [stage, seconds] : metrics_->StageSeconds()) (*progress->mutable_stage_seconds())[stage] = seconds;
  if (report == nullptr) return;
  report->set_env_steps(progress->env_steps());
  report->set_env_steps_per_second(progress->env_steps_per_second_10s());
  report->set_policy_version(progress->policy_version());
  *report->mutable_stage_seconds() = progress->stage_seconds();
  report->set_last_error(progress->last_error());
}

v1::JoinRequest MakeJoin(const LearnerOptions& options, int data_port, int metrics_port) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  v1::JoinRequest join;
  join.set_protocol_major(kProtocolMajor);
  join.set_protocol_minor(kProtocolMinor);
  join.set_role(v1::ROLE_LEARNER);
  join.set_host(host);
  join.set_pid(getpid());
  join.set_data_address(JoinHostPort(options.announce_host, data_port));
  join.set_metrics_address(JoinHostPort(options.announce_host, metrics_port));
  return join;
}

}  // namespace

absl::Status LearnerOptions::Validate() const {
  if (coordinator.empty()) return absl::InvalidArgumentError("--coordinator: give the coordinator's host:port");
  if (run_directory.empty()) return absl::InvalidArgumentError("--run-dir: give the run's folder");
  for (const auto& [flag, address] :
       {std::pair{"--coordinator", &coordinator}, {"--listen", &listen}, {"--metrics", &metrics}}) {
    auto parsed = ParseHostPort(*address);
    if (!parsed.ok())
      return absl::InvalidArgumentError(absl::StrCat(flag, ": ", std::string(parsed.status().message())));
  }
  return absl::OkStatus();
}

absl::Status RunLearner(const LearnerOptions& options, ShutdownSignal* shutdown) {
  auto registry = std::make_shared<prometheus::Registry>();
  LearnerMetrics metrics(registry.get());
  ResourceSampler sampler(registry.get());
  auto http = HttpServer::Listen(options.metrics);
  if (!http.ok()) return http.status();
  (*http)->ServeMetrics(registry);

  LearnerService service;
  int port = 0;
  auto server = StartGrpcServer(options.listen, &service, &port);
  if (!server.ok()) return server.status();

  std::atomic<TrainingRun*> run{nullptr};
  Cancellation joining, expulsion;  // Expulsion: the coordinator does not take this learner back.
  CoordinatorClient::Options membership;
  membership.address = options.coordinator;
  membership.timeout = options.timeout;
  membership.join = MakeJoin(options, port, (*http)->port());
  membership.fill_report = [&](v1::HeartbeatRequest* request) {
    if (run.load() != nullptr) run.load()->FillReport(request->mutable_report(), request->mutable_progress());
    const ResourceSample sample = sampler.newest();
    request->mutable_report()->set_cpu_ratio(sample.cpu_ratio);
    request->mutable_report()->set_resident_bytes(sample.resident_bytes);
  };
  membership.cancel_join = &joining;
  membership.on_fatal = [&expulsion](const absl::Status& why) { expulsion.Cancel(why); };
  shutdown->OnSignal([&joining] { joining.Cancel(); });
  auto coordinator = CoordinatorClient::Join(std::move(membership));
  shutdown->OnSignal({});
  if (!coordinator.ok()) return coordinator.status();

  TrainingRun training(options, (*coordinator)->config(), (*coordinator)->membership().run_id, &metrics, shutdown,
                       &expulsion);
  run = &training;
  std::printf("learner listening data=%s metrics=%s\n", JoinHostPort(ParseHostPort(options.listen)->host, port).c_str(),
              JoinHostPort(ParseHostPort(options.metrics)->host, (*http)->port()).c_str());
  std::fflush(stdout);

  const absl::Status trained = training.Run(&service);
  (*coordinator)->Leave().IgnoreError();
  coordinator->reset();
  (*server)->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
  server->reset();  // Waits for the streams, which use what `training` owns.
  return trained;
}

}  // namespace skein
