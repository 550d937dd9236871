// SPDX-License-Identifier: Apache-2.0
#include "actor/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace skein {

using prometheus::BuildCounter;
using prometheus::BuildGauge;

ActorMetrics::ActorMetrics(prometheus::Registry* registry, uint32_t runners) {
  auto& stages = BuildCounter()
                     .Name("skein_actor_stage_seconds_total")
                     .Help("Wall seconds of the actor by stage, summed over threads")
                     .Register(*registry);
  for (size_t i = 0; i < kStageNames.size(); ++i) stage_seconds_[i] = &stages.Add({{"stage", kStageNames[i]}});
  const auto counter = [registry](const char* name, const char* help) {
    return &BuildCounter().Name(name).Help(help).Register(*registry).Add({});
  };
  env_steps_ = counter("skein_actor_env_steps_total", "Env steps in finished fragments");
  fragments_ = counter("skein_actor_fragments_total", "Finished fragments");
  sent_bytes_ = counter("skein_actor_sent_bytes_total", "Bytes of fragments sent");
  uncompressed_bytes_ = counter("skein_actor_sent_uncompressed_bytes_total",
                                "What those bytes would have been as fp32 and not compressed");
  reconnections_ = counter("skein_actor_reconnections_total", "Connections to a learner that broke");
  dropped_fragments_ =
      counter("skein_actor_dropped_batches_total", "Finished fragments given up because too many waited for a receipt");
  env_failures_ = counter("skein_actor_env_failures_total",
                          "Environments that threw or wrote what cannot be trained on, and were built anew");
  lost_episodes_ = counter("skein_actor_env_lost_episodes_total",
                           "Episodes truncated because an environment of one's own or its server failed");
  restarted_servers_ =
      counter("skein_actor_env_server_restarts_total", "Servers of environments that were started again");
  auto& receipts = BuildCounter().Name("skein_actor_receipts_total").Help("Receipts by result").Register(*registry);
  receipts_[v1::RECEIPT_RESULT_ACCEPTED] = &receipts.Add({{"result", "accepted"}});
  receipts_[v1::RECEIPT_RESULT_DUPLICATE] = &receipts.Add({{"result", "duplicate"}});
  receipts_[v1::RECEIPT_RESULT_STALE] = &receipts.Add({{"result", "stale"}});
  receipts_[v1::RECEIPT_RESULT_REJECTED] = &receipts.Add({{"result", "rejected"}});
  const auto histogram = [registry](const char* name, const char* help) {
    return &prometheus::BuildHistogram().Name(name).Help(help).Register(*registry).Add(
        {}, prometheus::Histogram::BucketBoundaries{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10});
  };
  receipt_seconds_ =
      histogram("skein_actor_receipt_seconds", "Time from handing a fragment to the transport until its receipt");
  heartbeat_seconds_ = histogram("skein_actor_heartbeat_seconds", "Round trip of a heartbeat to the coordinator");
  const auto gauge = [registry](const char* name, const char* help) {
    return &BuildGauge().Name(name).Help(help).Register(*registry).Add({});
  };
  policy_version_ = gauge("skein_actor_policy_version", "Newest policy version received");
  queued_fragments_ = gauge("skein_actor_queued_batches", "Fragments that are finished and have no receipt yet");
  undelivered_ =
      gauge("skein_actor_undelivered_seconds",
            "How long the oldest finished fragment has waited for its receipt, or the learner for a connection");
  limit_ = gauge("skein_actor_limit_env_steps_per_second",
                 "What the runners reached at stepping environments and nothing else; NaN = not measured");
  efficiency_ = gauge("skein_actor_efficiency_ratio", "Env steps collected per second over the limit");
  for (prometheus::Gauge* unknown : {policy_version_, limit_, efficiency_}) {
    unknown->Set(std::numeric_limits<double>::quiet_NaN());
  }
  BuildGauge().Name("skein_actor_runners").Help("Runner threads").Register(*registry).Add({}).Set(runners);
}

void ActorMetrics::AddStage(Stage stage, absl::Duration duration) {
  stage_seconds_[static_cast<size_t>(stage)]->Increment(absl::ToDoubleSeconds(duration));
}

std::map<std::string, double> ActorMetrics::StageSeconds() const {
  std::map<std::string, double> seconds;
  for (size_t i = 0; i < kStageNames.size(); ++i) seconds[kStageNames[i]] = stage_seconds_[i]->Value();
  return seconds;
}

void ActorMetrics::CountFragment(uint64_t env_steps) {
  fragments_->Increment();
  env_steps_->Increment(static_cast<double>(env_steps));
}

void ActorMetrics::CountSent(uint64_t bytes, uint64_t saved) {
  sent_bytes_->Increment(static_cast<double>(bytes));
  uncompressed_bytes_->Increment(static_cast<double>(bytes + saved));
}

void ActorMetrics::CountReceipt(v1::ReceiptResult result) {
  if (auto it = receipts_.find(result); it != receipts_.end()) it->second->Increment();
}

void ActorMetrics::SetExternalCounts(uint64_t lost_episodes, uint64_t restarted_servers) {
  // One thread, that of heartbeats, calls this.
  lost_episodes_->Increment(std::max(0.0, static_cast<double>(lost_episodes) - lost_episodes_->Value()));
  restarted_servers_->Increment(std::max(0.0, static_cast<double>(restarted_servers) - restarted_servers_->Value()));
}

void ActorMetrics::CountReconnection() { reconnections_->Increment(); }
void ActorMetrics::CountDroppedFragment() { dropped_fragments_->Increment(); }
void ActorMetrics::SetUndelivered(absl::Duration undelivered) { undelivered_->Set(absl::ToDoubleSeconds(undelivered)); }
void ActorMetrics::SetPolicyVersion(uint64_t version) { policy_version_->Set(static_cast<double>(version)); }
void ActorMetrics::ObserveReceipt(absl::Duration round_trip) {
  receipt_seconds_->Observe(absl::ToDoubleSeconds(round_trip));
}
void ActorMetrics::ObserveHeartbeat(absl::Duration round_trip) {
  heartbeat_seconds_->Observe(absl::ToDoubleSeconds(round_trip));
}
void ActorMetrics::SetQueuedFragments(size_t fragments) { queued_fragments_->Set(static_cast<double>(fragments)); }
void ActorMetrics::SetLimit(double env_steps_per_second) {
  limit_->Set(env_steps_per_second > 0 ? env_steps_per_second : std::numeric_limits<double>::quiet_NaN());
}
double ActorMetrics::limit() const { return std::isnan(limit_->Value()) ? 0 : limit_->Value(); }
void ActorMetrics::SetRate(double env_steps_per_second) { efficiency_->Set(env_steps_per_second / limit_->Value()); }
uint64_t ActorMetrics::env_steps() const { return static_cast<uint64_t>(env_steps_->Value()); }
uint64_t ActorMetrics::policy_version() const {
  return std::isnan(policy_version_->Value()) ? 0 : static_cast<uint64_t>(policy_version_->Value());
}

}  // namespace skein
