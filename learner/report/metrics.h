// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/telemetry/stage_names.h"
#include "learner/algorithm/update_stats.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "skein/v1/status.pb.h"
#include "skein/v1/trajectory.pb.h"

namespace skein {

// What a learner tells Prometheus. Thread-safe.
class LearnerMetrics {
 public:
  // receive: checking batches; admit: copying them into place; barrier: waiting for an iteration to be complete;
  // update: gradient steps; publish; checkpoint.
  enum class Stage { kReceive, kAdmit, kBarrier, kUpdate, kPublish, kCheckpoint };
  static constexpr std::array<const char*, 6> kStageNames = kLearnerStages;

  explicit LearnerMetrics(prometheus::Registry* registry);

  void AddStage(Stage stage, absl::Duration duration);
  std::map<std::string, double> StageSeconds() const;
  void SetActors(int actors);
  // `saved`: how many more bytes it had before rounding and compression.
  void CountBatch(v1::ReceiptResult result, uint64_t bytes, uint64_t saved);
  // Admitted batches that are not trained on yet, of as many as there is room for.
  void SetQueue(uint64_t batches, uint64_t room);
  // How long data have been owed; 0 = they are there.
  void SetStarving(absl::Duration starving) { starving_->Set(absl::ToDoubleSeconds(starving)); }
  void ObserveHeartbeat(absl::Duration round_trip);
  // What summing gradients over the ranks has cost since the start; `exposed` is what nothing hid.
  void SetReduction(uint64_t all_reduces, uint64_t bytes_sent, absl::Duration total, absl::Duration exposed);
  // Mean over the last 100 episodes of something that the environment measures in each.
  void SetEpisodeMetric(const std::string& name, double value);
  // Counters follow the account; `imbalance` is 0 unless there is a bug.
  void SetAccount(const v1::StepAccount& account, int64_t imbalance);
  // `samples`: of this rank, each of which counts once for each of the update's epochs.
  void CountIteration(uint64_t policy_lag, uint64_t samples, const UpdateStats& stats);
  void CountEpisode(int64_t length);
  // `unix_time`: when it was done.
  void CountCheckpoint(bool saved, absl::Duration duration, absl::Time unix_time);
  // Found at the start, and passed over for an older one.
  void CountDamagedCheckpoints(size_t checkpoints) {
    damaged_checkpoints_->Increment(static_cast<double>(checkpoints));
  }
  // A message that is no CollectRequest; its stream ends.
  void CountMalformedMessage() { malformed_->Increment(); }
  // What was kept from training because it is not finite.
  void CountQuarantinedBatch() { quarantined_batches_->Increment(); }
  void CountPolicySent(uint64_t bytes, uint64_t saved);
  // An iteration that went on without data of all environments.
  void CountShortfall();
  // Episodes begun anew because their environments could not be moved, ever.
  void SetRestartedEpisodes(uint64_t episodes) { RaiseTo(restarted_episodes_, static_cast<double>(episodes)); }
  // Of several ranks: how many this one is in a group with, and that they formed it anew.
  void SetRanks(int ranks) { ranks_->Set(ranks); }
  void CountReformation() { reformations_->Increment(); }
  // Of several ranks: the same number on all of them after the same iteration.
  void SetParametersDigest(uint64_t digest);
  void SetProgress(const v1::RunProgress& progress);

 private:
  void RaiseTo(prometheus::Counter* counter, double value);

  std::array<prometheus::Counter*, 6> stage_seconds_;
  prometheus::Gauge* actors_;
  std::map<v1::ReceiptResult, prometheus::Counter*> batches_;
  prometheus::Counter *received_bytes_, *received_uncompressed_, *policy_bytes_, *policy_uncompressed_;
  prometheus::Counter *collected_, *trained_, *stale_, *rejected_, *lost_;
  prometheus::Gauge *pending_, *imbalance_;
  prometheus::Counter *iterations_, *samples_, *gradient_steps_;
  prometheus::Histogram* policy_lag_;
  prometheus::Counter *episodes_, *episode_steps_, *restarted_episodes_;
  prometheus::Counter *checkpoints_, *checkpoint_failures_, *damaged_checkpoints_, *shortfalls_;
  prometheus::Histogram *checkpoint_seconds_, *heartbeat_seconds_;
  prometheus::Counter *malformed_, *quarantined_batches_, *quarantined_steps_;
  prometheus::Counter *all_reduces_, *all_reduce_bytes_, *all_reduce_seconds_, *all_reduce_exposed_seconds_;
  prometheus::Counter* reformations_;
  prometheus::Gauge* ranks_;
  prometheus::Gauge *parameters_digest_, *policy_version_, *target_, *return_mean_, *length_mean_;
  prometheus::Gauge *queued_, *queue_fill_, *starving_, *checkpoint_time_;
  prometheus::Family<prometheus::Gauge>*rate_, *loss_, *episode_metric_;
};

}  // namespace skein
