// SPDX-License-Identifier: Apache-2.0
#include "actor/actor.h"

#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actor/env_rebuilds.h"
#include "actor/learner_link.h"
#include "actor/limit_probe.h"
#include "actor/metrics.h"
#include "actor/outbox.h"
#include "actor/policy_store.h"
#include "actor/reachable_address.h"
#include "actor/runner.h"
#include "actor/runner_env.h"
#include "actor/step_sharing.h"
#include "base/config/resource_rules.h"
#include "base/net/grpc_transport.h"
#include "base/net/http_server.h"
#include "base/process/cancellation.h"
#include "base/process/clock.h"
#include "base/process/exit_code.h"
#include "base/process/freed_memory.h"
#include "base/process/share_enforcer.h"
#include "base/telemetry/log.h"
#include "base/telemetry/rate_window.h"
#include "base/telemetry/resource_sampler.h"
#include "env/env_config.h"
#include "env/external/external_counts.h"
#include "env/registry.h"
#include "env/step_watchdog.h"
#include "member/coordinator_client.h"
#include "policy/snapshot.h"
#include "prometheus/registry.h"
#include "trajectory/env_spec_info.h"

namespace skein {
namespace {

constexpr absl::Duration kDeliveryTimeout = absl::Seconds(3);
// Finished fragments that may wait for a connection, for each ticket that an actor holds at most.
constexpr uint32_t kFragmentsForTicket = 4;
constexpr absl::Duration kLimitProbe = absl::Milliseconds(150);
constexpr absl::Duration kDrainTimeout = absl::Seconds(30);  // Nothing waits for this actor to end.

v1::JoinRequest MakeJoin(const ActorOptions& options, int metrics_port) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  v1::JoinRequest join;
  join.set_protocol_major(kProtocolMajor);
  join.set_protocol_minor(kProtocolMinor);
  join.set_role(v1::ROLE_ACTOR);
  join.set_host(host);
  join.set_pid(getpid());
  join.set_metrics_address(MetricsAddress(options.metrics, metrics_port, options.announce_host, options.coordinator));
  join.set_runners(options.runners);
  return join;
}

// Ends the process: a thread that does not return cannot be stopped. The supervisor starts another process,
// and the tickets of this one are granted again.
void EndBecauseOfHang(const std::string& env_id, double limit_seconds, const EnvActivity::Place& place) {
  const absl::Status why = absl::AbortedError(
      absl::StrCat("environment ", place.env_index, " of ", env_id, ", episode ", place.episode, ", step ", place.step,
                   ": has taken longer than ", limit_seconds, " s (rollout.step_timeout_seconds)"));
  spdlog::default_logger()->flush();
  _exit(ReportAndExitCode("skein-actor", why));
}

// Everything of one actor process that starts and stops with its membership.
class Actor {
 public:
  // `probed`: whether this process knows its limit already.
  Actor(const ActorOptions& options, ActorMetrics* metrics, ResourceSampler* sampler, bool* probed)
      : options_(options),
        metrics_(metrics),
        sampler_(sampler),
        probed_(probed),
        outbox_(size_t{kFragmentsForTicket} * (options.runners + 1)) {}

  // Joins and works until the run is over or RequestStop(). Aborted: join again.
  absl::Status Run(int metrics_port);
  // From any thread. The actor delivers what it has and leaves.
  void RequestStop();
  bool stop_requested() const { return stop_; }
  bool draining() const { return draining_; }

 private:
  absl::Status Work(CoordinatorClient* coordinator);
  void OnMembership(const CoordinatorClient::Membership& membership);
  void SetTarget(const CoordinatorClient::Membership& membership) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FillReport(v1::HeartbeatRequest* request);
  void StopRunners();
  // Runners finish the fragments they have begun, and begin no other.
  void Drain();

  const ActorOptions& options_;
  ActorMetrics* const metrics_;
  ResourceSampler* const sampler_;
  bool* const probed_;
  Outbox outbox_;
  PolicyStore policies_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> draining_{false};
  Cancellation joining_;
  Cancellation fatal_;  // Why the coordinator does not take this actor back.
  RateWindow rate_;     // Of the coordinator client's thread.
  absl::Mutex mu_;
  LearnerLink* link_ ABSL_GUARDED_BY(mu_) = nullptr;
  EnvRebuilds* rebuilds_ ABSL_GUARDED_BY(mu_) = nullptr;
};

void Actor::OnMembership(const CoordinatorClient::Membership& membership) {
  absl::MutexLock lock(&mu_);
  if (link_ != nullptr) SetTarget(membership);
}

void Actor::SetTarget(const CoordinatorClient::Membership& membership) {
  link_->SetTarget({ReachableAddress(membership.learner_address, options_.coordinator), membership.run_id,
                    membership.member_id, membership.generation});
}

void Actor::FillReport(v1::HeartbeatRequest* request) {
  v1::MemberReport& report = *request->mutable_report();
  const ResourceSample sample = sampler_->newest();
  report.set_env_steps(outbox_.env_steps_collected());
  rate_.Add(MonotonicNow(), report.env_steps());
  report.set_env_steps_per_second(rate_.Rate(MonotonicNow(), absl::Seconds(10)));
  report.set_limit_env_steps_per_second(metrics_->limit());
  metrics_->SetRate(report.env_steps_per_second());
  metrics_->SetQueuedFragments(outbox_.unreceipted());
  metrics_->SetExternalCounts(CountsOfExternalEnvs().lost_episodes, CountsOfExternalEnvs().restarted_servers);
  {
    absl::MutexLock lock(&mu_);
    const absl::Duration undelivered = link_ == nullptr ? absl::ZeroDuration() : link_->undelivered();
    metrics_->SetUndelivered(undelivered);
    report.set_undelivered_seconds(absl::ToDoubleSeconds(undelivered));
  }
  report.set_last_error(FirstReasonOfExternalEnvs().why());
  report.set_policy_version(metrics_->policy_version());
  report.set_cpu_ratio(sample.cpu_ratio);
  report.set_resident_bytes(sample.resident_bytes);
  for (const auto& [stage, seconds] : metrics_->StageSeconds()) (*report.mutable_stage_seconds())[stage] = seconds;
}

void Actor::StopRunners() {
  stop_ = true;
  outbox_.Stop();
  policies_.Stop();
  absl::MutexLock lock(&mu_);
  if (rebuilds_ != nullptr) rebuilds_->Cancel();
}

void Actor::Drain() {
  spdlog::info("asked to leave: the fragments that were begun are finished and delivered first");
  draining_ = true;
  outbox_.Stop();
  policies_.Stop();
}

void Actor::RequestStop() {
  joining_.Cancel();
  StopRunners();
}

absl::Status Actor::Run(int metrics_port) {
  CoordinatorClient::Options membership;
  membership.address = options_.coordinator;
  membership.timeout = options_.timeout;
  membership.cancel_join = &joining_;
  membership.join = MakeJoin(options_, metrics_port);
  membership.fill_report = [this](v1::HeartbeatRequest* request) { FillReport(request); };
  membership.on_membership = [this](const CoordinatorClient::Membership& now) { OnMembership(now); };
  membership.on_heartbeat = [this](absl::Duration round_trip) { metrics_->ObserveHeartbeat(round_trip); };
  membership.on_run_state = [this](v1::RunState state) {
    if (state == v1::RUN_STATE_FINISHED || state == v1::RUN_STATE_STOPPED || state == v1::RUN_STATE_FAILED)
      RequestStop();
  };
  membership.on_drain = [this] { Drain(); };
  membership.on_fatal = [this](const absl::Status& why) {
    fatal_.Cancel(why);
    RequestStop();
  };
  const bool scrapable = !membership.join.metrics_address().empty();
  auto coordinator = CoordinatorClient::Join(std::move(membership));
  if (!coordinator.ok()) return coordinator.status();
  std::printf("actor joined member=%s metrics=%s\n", (*coordinator)->membership().member_id.c_str(),
              JoinHostPort(ParseHostPort(options_.metrics)->host, metrics_port).c_str());
  std::fflush(stdout);
  if (!scrapable) {
    spdlog::info("/metrics is served to this machine only, at {}; --metrics 0.0.0.0:0 shows it to others",
                 JoinHostPort(ParseHostPort(options_.metrics)->host, metrics_port));
  }
  const absl::Status status = Work(coordinator->get());
  (*coordinator)->Leave().IgnoreError();
  std::printf("actor left member=%s env_steps=%" PRIu64 "\n", (*coordinator)->membership().member_id.c_str(),
              metrics_->env_steps());
  std::fflush(stdout);
  const absl::Status fatal = fatal_.status();
  return fatal.ok() ? status : fatal;
}

absl::Status Actor::Work(CoordinatorClient* coordinator) {
  const v1::RunConfig& config = coordinator->config();
  if (config.sync().mode() == v1::SYNC_MODE_ON_DEVICE) {
    return absl::InvalidArgumentError(
        "the run steps its environments on the learner's device (sync.mode on_device) and has no use for workers");
  }
  const ResourceShare share = ActorShare(config);
  const auto held = HoldThisProcess("actor", share);
  if (!held.ok()) return held.status();
  if (!held->empty()) spdlog::info("share of this actor: {}", *held);
  if (share.memory_bytes) EndWhenOutOfMemory("skein-actor", share);
  sampler_->ExportShare(share);
  sampler_->ExportNode(coordinator->membership().run_id);
  sampler_->SetPeriod(absl::Seconds(config.logging().utilization_interval_seconds()));
  const auto env_spec = FindEnvSpec(config.env().id(), MakeEnvOptions(config.env()));
  if (!env_spec.ok()) return env_spec.status();
  const PolicySpec policy_spec = MakePolicySpec(config.model(), *env_spec);
  const double step_limit = config.rollout().step_timeout_seconds();
  const auto on_hang = [&config, step_limit](const EnvActivity::Place& place) {
    EndBecauseOfHang(config.env().id(), step_limit, place);
  };
  if (!std::exchange(*probed_, true)) {
    std::vector<EnvActivity> activities(options_.runners);
    std::vector<EnvActivity*> told;
    for (EnvActivity& activity : activities) told.push_back(&activity);
    const StepWatchdog watchdog({told.begin(), told.end()}, absl::Seconds(step_limit), on_hang);
    const auto limit = MeasureEnvLimit(RunnerEnvOptions(config), options_.runners, kLimitProbe, told);
    if (!limit.ok()) return limit.status();
    metrics_->SetLimit(*limit);
  }

  EnvRebuilds rebuilds(
      config.rollout().env_rebuilds(), [&config](uint32_t phase) { return MakeRunnerEnv(config, phase); }, metrics_);
  HeldEnvs held_envs;
  StepSharing sharing([this] { outbox_.Nudge(); });
  std::vector<std::unique_ptr<Runner>> runners;
  std::vector<const EnvActivity*> watched;
  for (uint32_t i = 0; i < options_.runners; ++i) {
    auto runner = Runner::Make(config, &rebuilds, &held_envs, &outbox_, &policies_, &sharing, metrics_, &stop_);
    if (!runner.ok()) return runner.status();
    watched.push_back(&(*runner)->activity());
    runners.push_back(*std::move(runner));
  }
  const StepWatchdog watchdog(watched, absl::Seconds(step_limit), on_hang);

  LearnerLink::Options link_options;
  link_options.env_spec = MakeEnvSpecInfo(*env_spec);
  link_options.runners = options_.runners;
  link_options.outbox = &outbox_;
  link_options.policies = &policies_;
  link_options.metrics = metrics_;
  link_options.on_policy = [&](uint64_t stream, const v1::PolicySnapshot& snapshot) {
    auto policy = ReadSnapshot(snapshot, policy_spec);
    if (policy.ok()) policies_.Put(stream, *std::move(policy));
    return policy.status();
  };
  LearnerLink link(link_options);
  {
    absl::MutexLock lock(&mu_);
    link_ = &link;
    rebuilds_ = &rebuilds;
    if (stop_) rebuilds.Cancel();
    SetTarget(coordinator->membership());
  }

  std::vector<absl::Status> runner_status(runners.size());
  std::vector<std::thread> runner_threads;
  for (size_t i = 0; i < runners.size(); ++i) {
    runner_threads.emplace_back([&, i] {
      runner_status[i] = runners[i]->Run();
      if (!runner_status[i].ok()) StopRunners();  // If one runner fails, all stop.
    });
  }
  absl::Status link_status;
  std::thread link_thread([&] {
    link_status = link.Run();
    outbox_.GiveUp();
    StopRunners();
  });

  // Shutdown, in order: runners -> deliver -> goodbye -> link.
  for (std::thread& thread : runner_threads) thread.join();
  const absl::Duration timeout = stop_ ? kDeliveryTimeout : kDrainTimeout;
  outbox_.WaitUntilReceipted(link.finished() ? absl::ZeroDuration() : timeout);
  link.Stop();
  outbox_.StopSending();
  link.WaitUntilEnded(absl::Seconds(1));
  link.Abort();
  link_thread.join();
  {
    absl::MutexLock lock(&mu_);
    link_ = nullptr;
    rebuilds_ = nullptr;
  }
  for (const absl::Status& status : runner_status) {
    if (!status.ok()) return status;
  }
  return link_status;
}

// Alive: it answers. Ready: it has a policy to act by.
void ServeHealth(HttpServer* server, const ActorMetrics* metrics) {
  server->Handle("/healthz", [] { return HttpServer::Response{200, "text/plain", "ok\n"}; });
  server->Handle("/readyz", [metrics] {
    if (metrics->policy_version() > 0) return HttpServer::Response{200, "text/plain", "ok\n"};
    return HttpServer::Response{503, "text/plain", "no policy has arrived yet\n"};
  });
}

}  // namespace

absl::Status ActorOptions::Validate() const {
  if (runners < 1 || runners > 4096) {
    return absl::InvalidArgumentError(absl::StrCat("--runners: want 1 to 4096, got ", runners));
  }
  for (const auto& [flag, status] : {std::pair{"--coordinator", ParseAddresses(coordinator).status()},
                                     {"--metrics", ParseHostPort(metrics).status()}}) {
    if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat(flag, ": ", std::string(status.message())));
  }
  return absl::OkStatus();
}

absl::Status RunActor(const ActorOptions& options, ShutdownSignal* shutdown, bool* drained) {
  KeepFreedMemory();
  auto registry = std::make_shared<prometheus::Registry>();
  ActorMetrics metrics(registry.get(), options.runners);
  ResourceSampler sampler(registry.get());
  auto http = HttpServer::Listen(options.metrics);
  if (!http.ok()) return http.status();
  (*http)->ServeMetrics(registry);
  ServeHealth(http->get(), &metrics);
  bool probed = false;
  while (true) {
    Actor actor(options, &metrics, &sampler, &probed);
    shutdown->OnSignal([&actor] { actor.RequestStop(); });
    const absl::Status status = actor.Run((*http)->port());
    shutdown->OnSignal({});
    *drained = actor.draining();
    if (*drained && (status.ok() || absl::IsAborted(status))) return absl::OkStatus();
    if (!absl::IsAborted(status) || shutdown->signalled()) return status;
    spdlog::warn("{}; joining again", status.ToString());
  }
}

}  // namespace skein
