// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "base/telemetry/stage_names.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "skein/v1/trajectory.pb.h"

namespace skein {

// The metrics that an actor exports to Prometheus. Thread-safe.
class ActorMetrics {
 public:
  // env_step: physics; inference: policy and noise; build: writing the fragment; send: handing it to the transport;
  // wait: for a ticket or its policy.
  enum class Stage { kEnvStep, kInference, kBuild, kSend, kWait };
  static constexpr std::array<const char*, 5> kStageNames = kActorStages;

  explicit ActorMetrics(prometheus::Registry* registry, uint32_t runners);

  void AddStage(Stage stage, absl::Duration duration);
  std::map<std::string, double> StageSeconds() const;
  void CountFragment(uint64_t env_steps);
  // `saved`: bytes removed by rounding and compression.
  void CountSent(uint64_t bytes, uint64_t saved);
  void CountReceipt(v1::ReceiptResult result);
  void CountReconnection();
  // An environment failed. It is rebuilt unless the limit of EnvRebuilds is exceeded.
  void CountEnvFailure() { env_failures_->Increment(); }
  // Totals of environments of one's own (env/external/external_counts.h).
  void SetExternalCounts(uint64_t lost_episodes, uint64_t restarted_servers);
  void CountDroppedFragment();
  void SetPolicyVersion(uint64_t version);
  // Time from handing a fragment to the transport to its receipt.
  void ObserveReceipt(absl::Duration round_trip);
  void ObserveHeartbeat(absl::Duration round_trip);
  // Fragments that are finished and have no receipt yet.
  void SetQueuedFragments(size_t fragments);
  // As LearnerLink::undelivered().
  void SetUndelivered(absl::Duration undelivered);
  // The result of MeasureEnvLimit(); 0 = no limit, and then no efficiency.
  void SetLimit(double env_steps_per_second);
  // The current rate of collection.
  void SetRate(double env_steps_per_second);
  double limit() const;             // 0 = not measured, or no limit.
  uint64_t policy_version() const;  // 0 = none yet.
  uint64_t env_steps() const;       // The sum of CountFragment().

 private:
  std::array<prometheus::Counter*, 5> stage_seconds_;
  prometheus::Counter *env_steps_, *fragments_, *sent_bytes_, *uncompressed_bytes_, *reconnections_,
      *dropped_fragments_, *env_failures_, *lost_episodes_, *restarted_servers_;
  std::map<v1::ReceiptResult, prometheus::Counter*> receipts_;
  prometheus::Histogram *receipt_seconds_, *heartbeat_seconds_;
  prometheus::Gauge *policy_version_, *queued_fragments_, *undelivered_, *limit_, *efficiency_;
};

}  // namespace skein
