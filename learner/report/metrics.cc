// SPDX-License-Identifier: Apache-2.0
#include "learner/report/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace skein {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::Registry;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

prometheus::Counter* Counter(Registry* registry, const char* name, const char* help) {
  return &BuildCounter().Name(name).Help(help).Register(*registry).Add({});
}

prometheus::Gauge* Gauge(Registry* registry, const char* name, const char* help) {
  return &BuildGauge().Name(name).Help(help).Register(*registry).Add({});
}

prometheus::Histogram* Histogram(Registry* registry, const char* name, const char* help) {
  return &prometheus::BuildHistogram().Name(name).Help(help).Register(*registry).Add(
      {}, prometheus::Histogram::BucketBoundaries{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30});
}

}  // namespace

LearnerMetrics::LearnerMetrics(Registry* registry) {
  auto& stages = BuildCounter()
                     .Name("skein_learner_stage_seconds_total")
                     .Help("Wall seconds of the learner by stage, summed over threads")
                     .Register(*registry);
  for (size_t i = 0; i < kStageNames.size(); ++i) stage_seconds_[i] = &stages.Add({{"stage", kStageNames[i]}});
  actors_ = Gauge(registry, "skein_learner_actors", "Actors with an open trajectory stream");

  auto& batches =
      BuildCounter().Name("skein_learner_batches_total").Help("Fragments received, by result").Register(*registry);
  batches_[v1::RECEIPT_RESULT_ACCEPTED] = &batches.Add({{"result", "accepted"}});
  batches_[v1::RECEIPT_RESULT_DUPLICATE] = &batches.Add({{"result", "duplicate"}});
  batches_[v1::RECEIPT_RESULT_STALE] = &batches.Add({{"result", "stale"}});
  batches_[v1::RECEIPT_RESULT_REJECTED] = &batches.Add({{"result", "rejected"}});
  received_bytes_ = Counter(registry, "skein_learner_received_bytes_total", "Bytes of fragments received");
  received_uncompressed_ = Counter(registry, "skein_learner_received_uncompressed_bytes_total",
                                   "What those bytes would have been as fp32 and not compressed");
  policy_bytes_ = Counter(registry, "skein_learner_policy_sent_bytes_total", "Bytes of policy snapshots sent");
  policy_uncompressed_ = Counter(registry, "skein_learner_policy_sent_uncompressed_bytes_total",
                                 "What those bytes would have been as fp32 and not compressed");

  auto& steps = BuildCounter()
                    .Name("skein_learner_env_steps_total")
                    .Help("Env steps by fate; collected = trained + stale + rejected + lost + pending")
                    .Register(*registry);
  collected_ = &steps.Add({{"fate", "collected"}});
  trained_ = &steps.Add({{"fate", "trained"}});
  stale_ = &steps.Add({{"fate", "stale"}});
  rejected_ = &steps.Add({{"fate", "rejected"}});
  lost_ = &steps.Add({{"fate", "lost"}});
  pending_ = Gauge(registry, "skein_learner_pending_env_steps", "Env steps on the way or waiting to be trained on");
  imbalance_ = Gauge(registry, "skein_learner_env_steps_imbalance",
                     "Collected less all fates and pending; anything but 0 is a bug");

  iterations_ = Counter(registry, "skein_learner_iterations_total", "Finished iterations");
  samples_ = Counter(registry, "skein_learner_samples_total", "Samples trained on, counted once for each epoch");
  gradient_steps_ = Counter(registry, "skein_learner_gradient_steps_total", "Optimizer steps");
  policy_lag_ = &prometheus::BuildHistogram()
                     .Name("skein_learner_policy_lag_versions")
                     .Help("Learner version minus behaviour version of each iteration")
                     .Register(*registry)
                     .Add({}, prometheus::Histogram::BucketBoundaries{0, 1, 2, 4, 8, 16});
  episodes_ = Counter(registry, "skein_learner_episodes_total", "Finished episodes");
  episode_steps_ = Counter(registry, "skein_learner_episode_steps_total", "Env steps of finished episodes");
  checkpoints_ = Counter(registry, "skein_learner_checkpoints_total", "Checkpoints written");
  checkpoint_failures_ =
      Counter(registry, "skein_learner_checkpoint_failures_total", "Checkpoints that could not be written");
  damaged_checkpoints_ = Counter(registry, "skein_learner_damaged_checkpoints_total",
                                 "Checkpoints found damaged at the start and passed over for an older one");
  checkpoint_seconds_ = Histogram(registry, "skein_learner_checkpoint_seconds", "Time that writing a checkpoint took");
  checkpoint_time_ = Gauge(registry, "skein_learner_checkpoint_timestamp_seconds",
                           "Unix time of the last checkpoint that this process wrote; NaN = none");
  malformed_ = Counter(registry, "skein_learner_malformed_messages_total",
                       "Messages on trajectory streams that could not be read; each ended its stream");
  auto& quarantined = BuildCounter()
                          .Name("skein_learner_quarantined_total")
                          .Help("What was kept from training because it has numbers that are not finite")
                          .Register(*registry);
  quarantined_batches_ = &quarantined.Add({{"what", "batch"}});
  quarantined_steps_ = &quarantined.Add({{"what", "gradient_step"}});
  all_reduces_ = Counter(registry, "skein_learner_all_reduces_total", "Sums of gradients over the ranks");
  all_reduce_bytes_ =
      Counter(registry, "skein_learner_all_reduce_sent_bytes_total", "Bytes that this rank sent for them");
  all_reduce_seconds_ =
      Counter(registry, "skein_learner_all_reduce_seconds_total", "Time in which sums of gradients were under way");
  all_reduce_exposed_seconds_ = Counter(registry, "skein_learner_all_reduce_exposed_seconds_total",
                                        "Time that training waited for sums of gradients");
  heartbeat_seconds_ =
      Histogram(registry, "skein_learner_heartbeat_seconds", "Round trip of a heartbeat to the coordinator");
  shortfalls_ = Counter(registry, "skein_learner_shortfalls_total",
                        "Iterations that went on without data of all environments of this rank");
  failed_episodes_ = Counter(registry, "skein_learner_failed_episodes_total",
                             "Episodes of iterations trained on that failed, which are in no other figure of them");
  restarted_episodes_ = Counter(registry, "skein_learner_restarted_episodes_total",
                                "Episodes begun anew because the actor that had their environments was lost");
  reformations_ = Counter(registry, "skein_learner_reformations_total",
                          "How often this rank formed a group again, because a rank was lost or came");
  callback_seconds_ =
      Counter(registry, "skein_learner_callback_seconds_total", "Time that training waited for the run's callback");
  ranks_ = Gauge(registry, "skein_learner_ranks", "Ranks that train together now, this one included; NaN = not known");
  world_ranks_ = Gauge(registry, "skein_learner_world_ranks", "Ranks that the run was started with");
  policy_version_ = Gauge(registry, "skein_learner_policy_version", "Newest published policy version");
  target_ = Gauge(registry, "skein_learner_target_env_steps", "Env steps at which the run ends");
  phase_ = Gauge(registry, "skein_learner_phase", "Phase of the run, counted from 1; 0 = the run has no phases");
  return_mean_ = Gauge(registry, "skein_learner_episode_return_mean", "Mean return of the last 100 episodes");
  length_mean_ = Gauge(registry, "skein_learner_episode_length_mean", "Mean length of the last 100 episodes, in steps");
  queued_ = Gauge(registry, "skein_learner_queued_batches", "Fragments admitted and not yet trained on");
  queue_fill_ = Gauge(registry, "skein_learner_queue_fill_ratio", "Those fragments over what there is room for");
  starving_ = Gauge(registry, "skein_learner_starving_seconds", "How long actors have owed data; 0 = they are there");
  rate_ = &BuildGauge()
               .Name("skein_learner_env_steps_per_second")
               .Help("Env steps trained on per second over a sliding window")
               .Register(*registry);
  episode_metric_ = &BuildGauge()
                         .Name("skein_learner_episode_metric")
                         .Help("Means over the last 100 episodes of what the environment measures")
                         .Register(*registry);
  callback_metric_ = &BuildGauge()
                          .Name("skein_learner_callback_metric")
                          .Help("What the run's callback logged last, by its names")
                          .Register(*registry);
  loss_ = &BuildGauge()
               .Name("skein_learner_update_figure")
               .Help("Statistics of the last update, by name")
               .Register(*registry);
  for (prometheus::Gauge* unknown :
       {checkpoint_time_, ranks_, policy_version_, target_, return_mean_, length_mean_, queue_fill_}) {
    unknown->Set(kUnknown);
  }
}

void LearnerMetrics::AddStage(Stage stage, absl::Duration duration) {
  stage_seconds_[static_cast<size_t>(stage)]->Increment(absl::ToDoubleSeconds(duration));
}

std::map<std::string, double> LearnerMetrics::StageSeconds() const {
  std::map<std::string, double> seconds;
  for (size_t i = 0; i < kStageNames.size(); ++i) seconds[kStageNames[i]] = stage_seconds_[i]->Value();
  return seconds;
}

void LearnerMetrics::SetActors(int actors) { actors_->Set(actors); }

void LearnerMetrics::CountFragment(v1::ReceiptResult result, uint64_t bytes, uint64_t saved) {
  batches_.at(result)->Increment();
  received_bytes_->Increment(static_cast<double>(bytes));
  received_uncompressed_->Increment(static_cast<double>(bytes + saved));
}

void LearnerMetrics::SetQueue(uint64_t batches, uint64_t room) {
  queued_->Set(static_cast<double>(batches));
  queue_fill_->Set(room > 0 ? std::min(1.0, static_cast<double>(batches) / static_cast<double>(room)) : kUnknown);
}

void LearnerMetrics::ObserveHeartbeat(absl::Duration round_trip) {
  heartbeat_seconds_->Observe(absl::ToDoubleSeconds(round_trip));
}

void LearnerMetrics::SetReduction(uint64_t all_reduces, uint64_t bytes_sent, absl::Duration total,
                                  absl::Duration exposed) {
  RaiseTo(all_reduces_, static_cast<double>(all_reduces));
  RaiseTo(all_reduce_bytes_, static_cast<double>(bytes_sent));
  RaiseTo(all_reduce_seconds_, absl::ToDoubleSeconds(total));
  RaiseTo(all_reduce_exposed_seconds_, absl::ToDoubleSeconds(exposed));
}

void LearnerMetrics::SetEpisodeMetric(const std::string& name, double value) {
  episode_metric_->Add({{"metric", name}}).Set(value);
}

void LearnerMetrics::RaiseTo(prometheus::Counter* counter, double value) {
  const double rise = value - counter->Value();
  if (rise > 0) counter->Increment(rise);
}

void LearnerMetrics::SetAccount(const v1::StepAccount& account, int64_t imbalance) {
  RaiseTo(collected_, static_cast<double>(account.collected()));
  RaiseTo(trained_, static_cast<double>(account.trained()));
  RaiseTo(stale_, static_cast<double>(account.stale()));
  RaiseTo(rejected_, static_cast<double>(account.rejected()));
  RaiseTo(lost_, static_cast<double>(account.lost()));
  pending_->Set(static_cast<double>(account.pending()));
  imbalance_->Set(static_cast<double>(imbalance));
}

void LearnerMetrics::CountIteration(uint64_t policy_lag, uint64_t samples, const UpdateStats& stats) {
  iterations_->Increment();
  policy_lag_->Observe(static_cast<double>(policy_lag));
  samples_->Increment(stats.Get(UpdateStats::kEpochs, 1) * static_cast<double>(samples));
  gradient_steps_->Increment(stats.Get(UpdateStats::kGradientSteps, 0));
  quarantined_steps_->Increment(stats.Get(UpdateStats::kSkippedSteps, 0));
}

void LearnerMetrics::CountEpisode(int64_t length) {
  episodes_->Increment();
  episode_steps_->Increment(static_cast<double>(length));
}

void LearnerMetrics::CountCheckpoint(bool saved, absl::Duration duration, absl::Time unix_time) {
  (saved ? checkpoints_ : checkpoint_failures_)->Increment();
  if (!saved) return;
  checkpoint_seconds_->Observe(absl::ToDoubleSeconds(duration));
  checkpoint_time_->Set(absl::ToDoubleSeconds(unix_time - absl::UnixEpoch()));
}

void LearnerMetrics::CountPolicySent(uint64_t bytes, uint64_t saved) {
  policy_bytes_->Increment(static_cast<double>(bytes));
  policy_uncompressed_->Increment(static_cast<double>(bytes + saved));
}

void LearnerMetrics::CountShortfall() { shortfalls_->Increment(); }

void LearnerMetrics::SetWorldRanks(int ranks) {
  world_ranks_->Set(ranks);
  if (ranks == 1) SetRanks(1);
}

void LearnerMetrics::SetProgress(const v1::RunProgress& progress) {
  policy_version_->Set(static_cast<double>(progress.policy_version()));
  target_->Set(static_cast<double>(progress.target_env_steps()));
  phase_->Set(progress.phase());
  return_mean_->Set(progress.mean_episode_return());
  length_mean_->Set(std::isnan(progress.mean_episode_return()) ? kUnknown : progress.mean_episode_length());
  rate_->Add({{"window", "10s"}}).Set(progress.env_steps_per_second_10s());
  rate_->Add({{"window", "60s"}}).Set(progress.env_steps_per_second_60s());
  rate_->Add({{"window", "300s"}}).Set(progress.env_steps_per_second_300s());
  for (const auto& [name, value] : progress.episode_metrics()) SetEpisodeMetric(name, value);
  for (const auto& [name, value] : progress.callback_metrics()) callback_metric_->Add({{"metric", name}}).Set(value);
  for (const auto& [figure, value] : progress.losses()) loss_->Add({{"figure", figure}}).Set(value);
}

}  // namespace skein
