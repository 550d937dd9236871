// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
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

// A learner's Prometheus metrics. Thread-safe.
class LearnerMetrics {
 public:
  // receive: checking fragments; admit: copying them into place; barrier: waiting for an iteration to be complete;
  // update: gradient steps; publish; checkpoint.
  enum class Stage { kReceive, kAdmit, kBarrier, kUpdate, kPublish, kCheckpoint };
  static constexpr std::array<const char*, 6> kStageNames = kLearnerStages;

  explicit LearnerMetrics(prometheus::Registry* registry);

  void AddStage(Stage stage, absl::Duration duration);
  std::map<std::string, double> StageSeconds() const;
  void SetActors(int actors);
  // `saved`: bytes that rounding and compression removed.
  void CountFragment(v1::ReceiptResult result, uint64_t bytes, uint64_t saved);
  // Admitted fragments not trained on yet, and the number that there is room for.
  void SetQueue(uint64_t batches, uint64_t room);
  // How long the learner has waited for data; 0 = it is not waiting.
  void SetStarving(absl::Duration starving) { starving_->Set(absl::ToDoubleSeconds(starving)); }
  void ObserveHeartbeat(absl::Duration round_trip);
  // Cost of gradient sums over the ranks since the start; `exposed`: time not hidden behind the backward pass.
  void SetReduction(uint64_t all_reduces, uint64_t bytes_sent, absl::Duration total, absl::Duration exposed);
  // Mean of an episode metric over the last 100 episodes.
  void SetEpisodeMetric(const std::string& name, double value);
  // Counters follow the account; `imbalance` is 0 unless there is a bug.
  void SetAccount(const v1::StepAccount& account, int64_t imbalance);
  // `samples`: of this rank; each counts once per epoch of the update.
  void CountIteration(uint64_t policy_lag, uint64_t samples, const UpdateStats& stats);
  void CountEpisode(int64_t length);
  void CountFailedEpisodes(uint64_t episodes) { failed_episodes_->Increment(static_cast<double>(episodes)); }
  // `unix_time`: when the write ended.
  void CountCheckpoint(bool saved, absl::Duration duration, absl::Time unix_time);
  // Damaged checkpoints found at the start and skipped for an older one.
  void CountDamagedCheckpoints(size_t checkpoints) {
    damaged_checkpoints_->Increment(static_cast<double>(checkpoints));
  }
  // A message that is not a CollectRequest; its stream ends.
  void CountMalformedMessage() { malformed_->Increment(); }
  // A fragment kept from training because a value is beyond its field's bound.
  void CountQuarantinedFragment() { quarantined_batches_->Increment(); }
  void CountPolicySent(uint64_t bytes, uint64_t saved);
  // An iteration that was trained on without the data of all environments.
  void CountShortfall();
  // Total of episodes restarted because their environments are not relocatable.
  void SetRestartedEpisodes(uint64_t episodes) { RaiseTo(restarted_episodes_, static_cast<double>(episodes)); }
  // With several ranks: the size of this rank's group, and that the group was formed again.
  void SetRanks(int ranks) { ranks_->Set(ranks); }
  void CountReformation() { reformations_->Increment(); }
  // How many ranks the run was started with; one rank is its own group.
  void SetWorldRanks(int ranks);
  // With several ranks: equal on all of them after the same iteration. Not a metric: learners show it at /digest.
  void SetParametersDigest(uint64_t digest) { parameters_digest_ = digest; }
  uint64_t parameters_digest() const { return parameters_digest_; }  // 0 = none yet, or one rank.
  // How long training has waited for the run's callback.
  void SetCallbackSpent(absl::Duration spent) { RaiseTo(callback_seconds_, absl::ToDoubleSeconds(spent)); }
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
  prometheus::Counter *episodes_, *episode_steps_, *failed_episodes_, *restarted_episodes_;
  prometheus::Counter *checkpoints_, *checkpoint_failures_, *damaged_checkpoints_, *shortfalls_;
  prometheus::Histogram *checkpoint_seconds_, *heartbeat_seconds_;
  prometheus::Counter *malformed_, *quarantined_batches_, *quarantined_steps_;
  prometheus::Counter *all_reduces_, *all_reduce_bytes_, *all_reduce_seconds_, *all_reduce_exposed_seconds_;
  prometheus::Counter *reformations_, *callback_seconds_;
  prometheus::Gauge *ranks_, *world_ranks_;
  std::atomic<uint64_t> parameters_digest_{0};
  prometheus::Gauge *policy_version_, *target_, *phase_, *return_mean_, *length_mean_;
  prometheus::Gauge *queued_, *queue_fill_, *starving_, *checkpoint_time_;
  prometheus::Family<prometheus::Gauge>*rate_, *loss_, *episode_metric_, *callback_metric_;
};

}  // namespace skein
