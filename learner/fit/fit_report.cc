// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_report.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/net/grpc_transport.h"
#include "base/net/host_port.h"
#include "base/net/http_server.h"
#include "base/net/protocol.h"
#include "base/process/clock.h"
#include "base/telemetry/gpu_monitor.h"
#include "base/telemetry/rate_window.h"
#include "base/telemetry/resource_sampler.h"
#include "learner/fit/fit_coordinator.h"
#include "learner/fit/fit_metrics.h"
#include "member/coordinator_client.h"
#include "prometheus/registry.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr absl::Duration kRateWindow = absl::Seconds(10);

v1::JoinRequest MakeJoin(const std::string& metrics_address) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  v1::JoinRequest join;
  join.set_protocol_major(kProtocolMajor);
  join.set_protocol_minor(kProtocolMinor);
  join.set_role(v1::ROLE_LEARNER);
  join.set_host(host);
  join.set_pid(getpid());
  join.set_data_address(metrics_address);  // It takes no fragments; no actor is told of it.
  join.set_metrics_address(metrics_address);
  join.set_rank(0);  // It speaks for all ranks.
  join.set_ranks(1);
  return join;
}

}  // namespace

struct FitReport::Impl {
  explicit Impl(const FitOptions& given, const RankEnvironment& at)
      : config(given.config),
        place(at),
        registry(std::make_shared<prometheus::Registry>()),
        metrics(registry.get()),
        sampler(registry.get(), absl::Milliseconds(500), GpuMonitor::Open(MonotonicNow()).value_or(nullptr)) {}

  void FillReport(v1::HeartbeatRequest* request) {
    const absl::MutexLock lock(&mu);
    v1::MemberReport& report = *request->mutable_report();
    const ResourceSample sample = sampler.newest();
    report.set_cpu_ratio(sample.cpu_ratio);
    report.set_resident_bytes(sample.resident_bytes);
    report.set_env_steps(progress.env_steps());
    report.set_env_steps_per_second(progress.env_steps_per_second_10s());
    report.set_last_error(progress.last_error());
    if (place.rank == 0) *request->mutable_progress() = progress;
  }

  const v1::FitConfig config;
  const RankEnvironment place;
  const std::shared_ptr<prometheus::Registry> registry;
  FitMetrics metrics;
  ResourceSampler sampler;
  std::unique_ptr<HttpServer> http;
  std::string address;

  mutable absl::Mutex mu;
  v1::RunProgress progress ABSL_GUARDED_BY(mu);
  RateWindow keys, sequences;
  absl::Duration began, waited_before, working_before, waited, working;
  double done_at_begin = 0;
  FitCoordinator own;
  std::unique_ptr<CoordinatorClient> coordinator;  // Last: it calls FillReport.
};

FitReport::FitReport(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FitReport::~FitReport() = default;

absl::StatusOr<std::unique_ptr<FitReport>> FitReport::Start(const FitOptions& options, const RankEnvironment& place,
                                                            const DataCounts& counts) {
  auto impl = std::make_unique<Impl>(options, place);
  const auto wanted = ParseHostPort(options.metrics);
  if (!wanted.ok()) return absl::InvalidArgumentError(absl::StrCat("--metrics: ", wanted.status().message()));
  auto http = HttpServer::Listen(JoinHostPort(wanted->host, place.rank == 0 ? wanted->port : 0));
  if (!http.ok()) return http.status();
  impl->http = *std::move(http);
  impl->http->ServeMetrics(impl->registry);
  impl->address = JoinHostPort(wanted->host, impl->http->port());
  impl->metrics.SetData(counts);
  {
    const absl::MutexLock lock(&impl->mu);
    impl->progress.set_state(v1::RUN_STATE_STARTING);
    impl->progress.set_target_env_steps(counts.train_sequences * options.config.train().epochs());
    impl->progress.set_eta_seconds(-1);
  }
  if (place.rank == 0 && options.coordinator.empty() && options.port >= 0) {
    auto own =
        StartFitCoordinator(options.config, options.run_directory,
                            counts.train_sequences * options.config.train().epochs(), options.port, options.http_port);
    if (own.ok()) {
      impl->own = *std::move(own);
    } else {
      spdlog::warn("no status page and no `skein top`: {}", std::string(own.status().message()));
    }
  }
  if (const std::string& at = options.coordinator.empty() ? impl->own.address : options.coordinator;
      place.rank == 0 && !at.empty()) {
    CoordinatorClient::Options membership;
    membership.address = at;
    membership.timeout = options.timeout;
    membership.join = MakeJoin(impl->address);
    Impl* const raw = impl.get();
    membership.fill_report = [raw](v1::HeartbeatRequest* request) { raw->FillReport(request); };
    membership.on_fatal = [](const absl::Status& why) {
      spdlog::warn("the coordinator knows this training no longer: {}", std::string(why.message()));
    };
    auto coordinator = CoordinatorClient::Join(membership);
    if (!coordinator.ok()) return coordinator.status();
    impl->coordinator = *std::move(coordinator);
    impl->sampler.ExportNode(impl->coordinator->membership().run_id);
  }
  return std::unique_ptr<FitReport>(new FitReport(std::move(impl)));
}

std::string FitReport::metrics_address() const { return impl_->address; }
const std::string& FitReport::coordinator_address() const { return impl_->own.address; }
const std::string& FitReport::page() const { return impl_->own.page; }

void FitReport::Begin(const FitProgress& progress, double done) {
  impl_->began = MonotonicNow();
  impl_->done_at_begin = done;
  impl_->keys.Add(impl_->began, progress.keys);
  impl_->sequences.Add(impl_->began, progress.sequences);
  const absl::MutexLock lock(&impl_->mu);
  impl_->progress.set_state(v1::RUN_STATE_TRAINING);
  impl_->progress.set_env_steps(progress.sequences);
  impl_->progress.set_start_env_steps(progress.sequences);
}

void FitReport::SetProgress(const FitProgress& progress, const FitStep& step, double done, uint64_t out_of_memory) {
  const absl::Duration now = MonotonicNow();
  impl_->keys.Add(now, progress.keys);
  impl_->sequences.Add(now, progress.sequences);
  impl_->metrics.SetStep(progress, step, out_of_memory);
  const double eta = eta_seconds(done);
  impl_->metrics.SetDone(done, keys_per_second(), eta);
  const absl::MutexLock lock(&impl_->mu);
  v1::RunProgress& to = impl_->progress;
  to.set_env_steps(progress.sequences);
  to.set_iteration(progress.steps);
  to.set_policy_version(progress.steps + 1);
  to.set_episodes(progress.epoch);
  to.set_eta_seconds(eta);
  to.set_env_steps_per_second_10s(impl_->sequences.Rate(now, absl::Seconds(10)));
  to.set_env_steps_per_second_60s(impl_->sequences.Rate(now, absl::Seconds(60)));
  to.set_env_steps_per_second_300s(impl_->sequences.Rate(now, absl::Seconds(300)));
  to.mutable_account()->set_collected(progress.sequences);
  to.mutable_account()->set_trained(progress.sequences);
  auto& losses = *to.mutable_losses();
  losses["loss"] = step.loss;
  losses["grad_norm"] = step.gradient_norm;
  losses["gradient_steps"] = static_cast<double>(progress.steps);
  losses["skipped_steps"] = static_cast<double>(progress.skipped);
  losses["keys_per_second"] = keys_per_second();
}

void FitReport::SetEpoch(const FitProgress& progress, double loss, std::optional<double> held_out_loss) {
  impl_->metrics.SetEpoch(progress, loss, held_out_loss);
  const absl::MutexLock lock(&impl_->mu);
  auto& losses = *impl_->progress.mutable_losses();
  losses["epochs"] = static_cast<double>(progress.epoch);
  losses["epoch_loss"] = loss;
  if (held_out_loss) losses["held_out_loss"] = *held_out_loss;
}

void FitReport::SetDataTimes(absl::Duration waited, absl::Duration working) {
  impl_->waited = waited;
  impl_->working = working;
  impl_->metrics.SetDataTimes(data_wait_seconds(), absl::ToDoubleSeconds(impl_->working_before + working));
}

void FitReport::EndOfStream() {
  impl_->waited_before += std::exchange(impl_->waited, absl::ZeroDuration());
  impl_->working_before += std::exchange(impl_->working, absl::ZeroDuration());
}

void FitReport::CountCheckpoint(bool written) { impl_->metrics.CountCheckpoint(written); }

void FitReport::End(const absl::Status& status, bool stopped, const std::string& checkpoint) {
  {
    const absl::MutexLock lock(&impl_->mu);
    v1::RunProgress& to = impl_->progress;
    to.set_state(!status.ok() ? v1::RUN_STATE_FAILED : stopped ? v1::RUN_STATE_STOPPED : v1::RUN_STATE_FINISHED);
    if (!status.ok()) to.set_last_error(std::string(status.message()));
    to.set_checkpoint(checkpoint);
    to.set_eta_seconds(stopped ? -1 : 0);
  }
  if (impl_->coordinator != nullptr) impl_->coordinator->Leave().IgnoreError();
}

double FitReport::keys_per_second() const { return impl_->keys.Rate(MonotonicNow(), kRateWindow); }

double FitReport::eta_seconds(double done) const {
  const double passed = absl::ToDoubleSeconds(MonotonicNow() - impl_->began), progressed = done - impl_->done_at_begin;
  return progressed > 0 ? passed * std::max(0.0, 1 - done) / progressed : -1;
}

double FitReport::data_wait_seconds() const { return absl::ToDoubleSeconds(impl_->waited_before + impl_->waited); }

void FitReport::AddResources(std::map<std::string, double>* numbers) const {
  const ResourceSample sample = impl_->sampler.newest();
  (*numbers)["cpu_ratio"] = sample.cpu_ratio;
  (*numbers)["resident_bytes"] = static_cast<double>(sample.resident_bytes);
  for (size_t i = 0; i < sample.gpus.size(); ++i) {
    const GpuSample& gpu = sample.gpus[i];
    if (gpu.utilization_ratio) (*numbers)[absl::StrCat("gpu", i, "_utilization_ratio")] = *gpu.utilization_ratio;
    if (gpu.memory_used_bytes) {
      (*numbers)[absl::StrCat("gpu", i, "_memory_bytes")] = static_cast<double>(*gpu.memory_used_bytes);
    }
  }
}

}  // namespace skein
