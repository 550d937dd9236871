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

// What an actor tells Prometheus. Thread-safe.
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
  // `saved`: how many more they were before rounding and compression.
  void CountSent(uint64_t bytes, uint64_t saved);
  void CountReceipt(v1::ReceiptResult result);
  void CountReconnection();
  // An environment failed, and others are built in its place unless it was once too often.
  void CountEnvFailure() { env_failures_->Increment(); }
  void CountDroppedBatch();
  void SetPolicyVersion(uint64_t version);
  // From handing a batch to the transport until its receipt.
  void ObserveReceipt(absl::Duration round_trip);
  void ObserveHeartbeat(absl::Duration round_trip);
  // Finished and without a receipt yet.
  void SetQueuedBatches(size_t batches);
  // As LearnerLink::undelivered().
  void SetUndelivered(absl::Duration undelivered);
  // What MeasureEnvLimit() found; 0 = there is none, and no efficiency then.
  void SetLimit(double env_steps_per_second);
  // What is collected now.
  void SetRate(double env_steps_per_second);
  double limit() const { return limit_->Value(); }
  uint64_t policy_version() const;
  uint64_t env_steps() const;  // As CountFragment() has added up.

 private:
  std::array<prometheus::Counter*, 5> stage_seconds_;
  prometheus::Counter *env_steps_, *fragments_, *sent_bytes_, *uncompressed_bytes_, *reconnections_, *dropped_batches_,
      *env_failures_;
  std::map<v1::ReceiptResult, prometheus::Counter*> receipts_;
  prometheus::Histogram *receipt_seconds_, *heartbeat_seconds_;
  prometheus::Gauge *policy_version_, *queued_batches_, *undelivered_, *limit_, *efficiency_;
};

}  // namespace skein
