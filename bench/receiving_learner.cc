// SPDX-License-Identifier: Apache-2.0
#include "bench/receiving_learner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/net/grpc_transport.h"
#include "base/process/clock.h"
#include "learner/collect/direction_returns.h"

namespace skein {
namespace {

constexpr uint64_t kPolicyVersion = 1;
constexpr absl::Duration kPatience = absl::Seconds(30);

void AddTo(v1::StageSeconds* sum, const v1::StageSeconds& more) {
  sum->set_env_step(sum->env_step() + more.env_step());
  sum->set_inference(sum->inference() + more.inference());
  sum->set_build(sum->build() + more.build());
  sum->set_wait(sum->wait() + more.wait());
}

}  // namespace

ReceivingLearner::ReceivingLearner(const Options& options)
    : options_(options),
      iteration_batches_(options.async ? options.async->fragments
                                       : uint64_t{options.num_envs} / static_cast<uint64_t>(options.shape.group_envs) *
                                             options.fragments_per_group),
      iteration_steps_(iteration_batches_ * static_cast<uint64_t>(options.shape.steps * options.shape.group_envs)) {}

absl::StatusOr<std::unique_ptr<ReceivingLearner>> ReceivingLearner::Start(const Options& options) {
  std::unique_ptr<ReceivingLearner> learner(new ReceivingLearner(options));
  auto server = StartGrpcServer("127.0.0.1:0", &learner->service_, &learner->port_);
  if (!server.ok()) return server.status();
  learner->server_ = *std::move(server);
  return learner;
}

ReceivingLearner::~ReceivingLearner() {
  if (server_ == nullptr) return;
  if (collector_ != nullptr) {
    collector_->Stop();
    service_.Finish();
    publisher_.Finish();
    service_.WaitUntilIdle(absl::Seconds(2));
  }
  server_->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
  server_.reset();
}

void ReceivingLearner::Serve(const std::string& run_id) {
  Collector::Options collect;
  collect.run_id = run_id;
  collect.shape = options_.shape;
  collect.share_envs = options_.num_envs;
  collect.fragments_per_group = options_.fragments_per_group;
  collect.async = options_.async;
  collect.directions = options_.directions;
  collector_ = std::make_unique<Collector>(collect, &metrics_);
  if (options_.policy != nullptr) publisher_.Publish(options_.policy);
  service_.Serve(run_id, collector_.get(), &publisher_);
}

uint64_t ReceivingLearner::ReceivedBytes() const {
  for (const prometheus::MetricFamily& family : registry_.Collect()) {
    if (family.name == "skein_learner_received_bytes_total") {
      return static_cast<uint64_t>(family.metric.at(0).counter.value);
    }
  }
  return 0;
}

uint64_t ReceivingLearner::StepsOf(const Collector::Iteration& iteration) const {
  return options_.shape.of_directions() ? ReadDirectionEpisodes(*iteration.batch, 1).env_steps : iteration_steps_;
}

absl::StatusOr<Collector::Iteration> ReceivingLearner::NextIteration(const std::function<absl::Status()>& healthy) {
  collector_->OpenIteration(kPolicyVersion);
  service_.SendGrants();
  const absl::Duration since = MonotonicNow();
  while (true) {
    auto iteration = collector_->WaitForIteration(absl::Milliseconds(200));
    if (iteration) {
      collector_->Trained(StepsOf(*iteration));
      return *std::move(iteration);
    }
    if (absl::Status s = healthy(); !s.ok()) return s;
    const bool slow_environment = collector_->actors() > 0 && MonotonicNow() - since < 20 * kPatience;
    if (MonotonicNow() - since > kPatience && !slow_environment) {
      return absl::UnavailableError(absl::StrCat("no trajectories for ", absl::FormatDuration(kPatience), "; ",
                                                 collector_->actors(), " actors are connected"));
    }
  }
}

absl::StatusOr<ReceivingLearner::Received> ReceivingLearner::Receive(const std::function<bool(const Received&)>& enough,
                                                                     const std::function<absl::Status()>& healthy) {
  const std::map<std::string, double> before = metrics_.StageSeconds();
  const uint64_t bytes_before = ReceivedBytes();
  const absl::Duration started = MonotonicNow();
  Received received;
  do {
    auto iteration = NextIteration(healthy);
    if (!iteration.ok()) return iteration.status();
    received.elapsed = MonotonicNow() - started;
    ++received.iterations;
    received.batches += iteration_batches_;
    received.env_steps += StepsOf(*iteration);
    AddTo(&received.actor_seconds, iteration->stage_seconds);
  } while (!enough(received));
  received.bytes = ReceivedBytes() - bytes_before;
  const std::map<std::string, double> after = metrics_.StageSeconds();
  for (const char* stage : {"receive", "admit"}) {
    received.learner_seconds[stage] = after.at(stage) - before.at(stage);
  }
  return received;
}

}  // namespace skein
