// SPDX-License-Identifier: Apache-2.0
#include "learner/run/learner.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/config/resource_rules.h"
#include "base/net/grpc_transport.h"
#include "base/net/http_server.h"
#include "base/process/cancellation.h"
#include "base/process/clock.h"
#include "base/process/share_enforcer.h"
#include "base/telemetry/gpu_monitor.h"
#include "base/telemetry/log.h"
#include "base/telemetry/resource_sampler.h"
#include "learner/collect/service.h"
#include "learner/report/metrics.h"
#include "learner/run/training_run.h"
#include "member/coordinator_client.h"
#include "prometheus/registry.h"

namespace skein {
namespace {

// More than the default lease.
constexpr absl::Duration kPredecessor = absl::Seconds(8);

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
  join.set_rank(options.rank);
  join.set_ranks(options.ranks);
  return join;
}

// The gRPC health service's answers over HTTP, for clients that cannot use gRPC with TLS (Kubernetes' probes).
void ServeHealth(HttpServer* server, const std::atomic<bool>* serving) {
  server->Handle("/healthz", [] { return HttpServer::Response{200, "text/plain", "ok\n"}; });
  server->Handle("/readyz", [serving] {
    if (*serving) return HttpServer::Response{200, "text/plain", "ok\n"};
    return HttpServer::Response{503, "text/plain", "it does not hand out work\n"};
  });
}

// Returns at once if it has come already.
void WaitForSignal(ShutdownSignal* shutdown) {
  absl::Notification signalled;
  shutdown->OnSignal([&signalled] { signalled.Notify(); });
  signalled.WaitForNotification();
  shutdown->OnSignal({});
}

}  // namespace

absl::Status LearnerOptions::Validate() const {
  if (coordinator.empty()) return absl::InvalidArgumentError("--coordinator: give the coordinator's host:port");
  if (run_directory.empty()) return absl::InvalidArgumentError("--run-dir: give the run's folder");
  for (const auto& [flag, status] : {std::pair{"--coordinator", ParseAddresses(coordinator).status()},
                                     {"--listen", ParseHostPort(listen).status()},
                                     {"--metrics", ParseHostPort(metrics).status()}}) {
    if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat(flag, ": ", std::string(status.message())));
  }
  return absl::OkStatus();
}

absl::Status RunLearner(const LearnerOptions& options, ShutdownSignal* shutdown) {
  std::error_code ignored;  // Later writes to the folder report the error.
  std::filesystem::create_directories(options.run_directory, ignored);
  auto registry = std::make_shared<prometheus::Registry>();
  LearnerMetrics metrics(registry.get());
  metrics.SetWorldRanks(static_cast<int>(options.ranks));
  ResourceSampler sampler(registry.get(), absl::Milliseconds(500), GpuMonitor::Open(MonotonicNow()).value_or(nullptr));
  std::atomic<bool> serving{false};
  auto http = HttpServer::Listen(options.metrics);
  if (!http.ok()) return http.status();
  (*http)->ServeMetrics(registry);
  ServeHealth(http->get(), &serving);
  (*http)->Handle("/digest", [&metrics] {
    return HttpServer::Response{200, "text/plain",
                                absl::StrCat(absl::Hex(metrics.parameters_digest(), absl::kZeroPad16), "\n")};
  });

  LearnerService service;
  int port = 0;
  auto server = StartGrpcServer(options.listen, &service, &port);
  if (!server.ok()) return server.status();
  service.OnServing([&server, &serving](bool now) {
    serving = now;
    SetReady(server->get(), now);
  });

  std::atomic<TrainingRun*> run{nullptr};
  Cancellation joining, expulsion;  // Expulsion: the coordinator does not take this learner back.
  CoordinatorClient::Options membership;
  membership.address = options.coordinator;
  membership.timeout = options.timeout;
  membership.join = MakeJoin(options, port, (*http)->port());
  membership.fill_report = [&](v1::HeartbeatRequest* request) {
    if (run.load() != nullptr) {
      run.load()->FillReport(request->mutable_report(), run.load()->reports() ? request->mutable_progress() : nullptr);
    }
    const ResourceSample sample = sampler.newest();
    request->mutable_report()->set_cpu_ratio(sample.cpu_ratio);
    request->mutable_report()->set_resident_bytes(sample.resident_bytes);
  };
  membership.on_heartbeat = [&metrics, &service, had_ended = false](absl::Duration round_trip) mutable {
    metrics.ObserveHeartbeat(round_trip);
    // The allocator would keep the memory of ended streams, above all of messages that were too large. Trimmed twice:
    // gRPC frees some of it only after it has reported a stream's end.
    const bool ended = service.TakeStreamEnded();
    if (ended || had_ended) malloc_trim(0);
    had_ended = ended;
  };
  membership.wants_status = [&service] { return service.HasUnconfirmed(); };
  membership.on_status = [&service](const v1::StatusResponse& status, absl::Duration asked) {
    service.Confirm(status, asked);
  };
  membership.cancel_join = &joining;
  membership.on_fatal = [&expulsion](const absl::Status& why) { expulsion.Cancel(why); };
  shutdown->OnSignal([&joining] { joining.Cancel(); });
  // The rank's predecessor may have been killed and still be a member: until its lease ends.
  const absl::Duration until = MonotonicNow() + std::min(options.timeout, kPredecessor);
  auto coordinator = CoordinatorClient::Join(membership);
  while (absl::IsAlreadyExists(coordinator.status()) && MonotonicNow() < until && !shutdown->signalled()) {
    absl::SleepFor(absl::Milliseconds(200));
    coordinator = CoordinatorClient::Join(membership);
  }
  shutdown->OnSignal({});
  if (!coordinator.ok()) return coordinator.status();
  const ResourceShare share = LearnerShare((*coordinator)->config());
  const auto held = HoldThisProcess("learner", share);
  if (!held.ok()) return held.status();
  if (!held->empty()) spdlog::info("share of this learner: {}", *held);
  sampler.ExportShare(share);
  sampler.ExportNode((*coordinator)->membership().run_id);
  sampler.SetPeriod(absl::Seconds((*coordinator)->config().logging().utilization_interval_seconds()));

  TrainingRun training(options, coordinator->get(), &metrics, shutdown, &expulsion);
  run = &training;
  std::printf("learner listening data=%s metrics=%s\n", JoinHostPort(ParseHostPort(options.listen)->host, port).c_str(),
              JoinHostPort(ParseHostPort(options.metrics)->host, (*http)->port()).c_str());
  std::fflush(stdout);

  const absl::Status trained = training.Run(&service);
  (*coordinator)->Leave().IgnoreError();
  coordinator->reset();
  if (options.stay && trained.ok()) WaitForSignal(shutdown);
  (*server)->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
  server->reset();  // Waits for the streams, which use what `training` owns.
  return trained;
}

}  // namespace skein
