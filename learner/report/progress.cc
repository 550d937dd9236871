// SPDX-License-Identifier: Apache-2.0
#include "learner/report/progress.h"

#include <cmath>
#include <limits>
#include <utility>

namespace skein {

ProgressTracker::ProgressTracker(uint64_t target_env_steps, uint64_t env_steps, uint64_t iteration, uint64_t episodes,
                                 std::vector<std::string> metrics, const EpisodeWindow& last)
    : metrics_(std::move(metrics)) {
  absl::MutexLock lock(&mu_);
  progress_.set_state(v1::RUN_STATE_WAITING_FOR_DATA);
  progress_.set_target_env_steps(target_env_steps);
  progress_.set_env_steps(env_steps);
  progress_.set_start_env_steps(env_steps);
  progress_.set_iteration(iteration);
  progress_.set_policy_version(iteration + 1);
  progress_.set_episodes(episodes);
  progress_.set_mean_episode_return(std::numeric_limits<double>::quiet_NaN());
  progress_.set_mean_episode_length(std::numeric_limits<double>::quiet_NaN());
  progress_.set_eta_seconds(-1);
  AddEpisodes(last.returns, last.lengths, &last.metrics);
}

void ProgressTracker::CountIteration(absl::Duration now, const Iteration& iteration) {
  absl::MutexLock lock(&mu_);
  progress_.set_state(v1::RUN_STATE_TRAINING);
  progress_.set_env_steps(progress_.env_steps() + iteration.env_steps);
  progress_.set_iteration(progress_.iteration() + 1);
  progress_.set_policy_version(iteration.policy_version);
  progress_.set_mean_policy_lag(static_cast<double>(iteration.policy_lag));
  rate_.Add(now, progress_.env_steps());
  progress_.mutable_losses()->clear();
  for (const auto& [name, value] : iteration.stats) (*progress_.mutable_losses())[name] = value;
  progress_.set_episodes(progress_.episodes() + iteration.episode_returns->size());
  AddEpisodes(*iteration.episode_returns, *iteration.episode_lengths, iteration.episode_metrics);
}

void ProgressTracker::AddEpisodes(const std::vector<double>& returns, const std::vector<int64_t>& lengths,
                                  const std::vector<float>* metrics) {
  for (size_t i = 0; i < returns.size(); ++i) {
    Episode episode{returns[i], lengths[i], {}};
    if (metrics != nullptr && metrics->size() == returns.size() * metrics_.size()) {
      const auto first = metrics->begin() + static_cast<int64_t>(i * metrics_.size());
      episode.metrics.assign(first, first + static_cast<int64_t>(metrics_.size()));
    }
    last_episodes_.push_back(std::move(episode));
    if (last_episodes_.size() > EpisodeWindow::kEpisodes) last_episodes_.pop_front();
  }
  if (last_episodes_.empty()) return;
  double return_sum = 0, length_sum = 0;
  std::vector<double> metric_sums(metrics_.size());
  for (const Episode& episode : last_episodes_) {
    return_sum += episode.episode_return;
    length_sum += static_cast<double>(episode.length);
    for (size_t i = 0; i < metric_sums.size(); ++i) {
      metric_sums[i] += episode.metrics.empty() ? std::numeric_limits<double>::quiet_NaN() : double{episode.metrics[i]};
    }
  }
  const double count = static_cast<double>(last_episodes_.size());
  progress_.set_mean_episode_return(return_sum / count);
  progress_.set_mean_episode_length(length_sum / count);
  for (size_t i = 0; i < metric_sums.size(); ++i) {
    (*progress_.mutable_episode_metrics())[metrics_[i]] = metric_sums[i] / count;
  }
}

void ProgressTracker::GoOnFrom(uint64_t env_steps, uint64_t iteration, uint64_t episodes) {
  absl::MutexLock lock(&mu_);
  progress_.set_env_steps(env_steps);
  progress_.set_iteration(iteration);
  progress_.set_policy_version(iteration + 1);
  progress_.set_episodes(episodes);
}

void ProgressTracker::SetPhase(uint32_t phase, uint32_t phases) {
  absl::MutexLock lock(&mu_);
  progress_.set_phase(phase);
  progress_.set_phases(phases);
}

void ProgressTracker::SetState(v1::RunState state) {
  absl::MutexLock lock(&mu_);
  progress_.set_state(state);
}

void ProgressTracker::SetCheckpoint(const std::string& path, const std::string& digest) {
  absl::MutexLock lock(&mu_);
  progress_.set_checkpoint(path);
  progress_.set_checkpoint_digest(digest);
}

void ProgressTracker::SetError(const std::string& error) {
  absl::MutexLock lock(&mu_);
  if (progress_.last_error().empty()) progress_.set_last_error(error);
}

void ProgressTracker::AddWarning(const std::string& warning) {
  absl::MutexLock lock(&mu_);
  progress_.add_warnings(warning);
}

void ProgressTracker::SetPolicyVersion(uint64_t version) {
  absl::MutexLock lock(&mu_);
  progress_.set_policy_version(version);
}

void ProgressTracker::SetCallbackMetrics(const std::map<std::string, double>& metrics) {
  absl::MutexLock lock(&mu_);
  for (const auto& [name, value] : metrics) (*progress_.mutable_callback_metrics())[name] = value;
}

v1::RunProgress ProgressTracker::Snapshot(absl::Duration now) const {
  absl::MutexLock lock(&mu_);
  v1::RunProgress progress = progress_;
  progress.set_env_steps_per_second_10s(rate_.Rate(now, absl::Seconds(10)));
  progress.set_env_steps_per_second_60s(rate_.Rate(now, absl::Seconds(60)));
  progress.set_env_steps_per_second_300s(rate_.Rate(now, absl::Seconds(300)));
  const double rate = progress.env_steps_per_second_60s();
  const double left = progress.target_env_steps() > progress.env_steps()
                          ? static_cast<double>(progress.target_env_steps() - progress.env_steps())
                          : 0;
  progress.set_eta_seconds(left == 0 ? 0 : rate > 0 ? left / rate : -1);
  return progress;
}

uint64_t ProgressTracker::env_steps() const {
  absl::MutexLock lock(&mu_);
  return progress_.env_steps();
}

double ProgressTracker::ReturnSpread() const {
  absl::MutexLock lock(&mu_);
  if (last_episodes_.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  const double count = static_cast<double>(last_episodes_.size());
  double sum = 0, squares = 0;
  for (const Episode& episode : last_episodes_) sum += episode.episode_return;
  for (const Episode& episode : last_episodes_) squares += std::pow(episode.episode_return - sum / count, 2);
  return std::sqrt(squares / count) / std::abs(sum / count);
}

EpisodeWindow ProgressTracker::LastEpisodes() const {
  absl::MutexLock lock(&mu_);
  EpisodeWindow window;
  for (const Episode& episode : last_episodes_) {
    window.returns.push_back(episode.episode_return);
    window.lengths.push_back(episode.length);
    window.metrics.insert(window.metrics.end(), episode.metrics.begin(), episode.metrics.end());
    window.metrics.resize(window.returns.size() * metrics_.size(), std::numeric_limits<float>::quiet_NaN());
  }
  return window;
}

}  // namespace skein
