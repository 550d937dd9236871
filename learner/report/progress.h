// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/telemetry/rate_window.h"
#include "learner/algorithm/update_stats.h"
#include "learner/report/episode_window.h"
#include "skein/v1/status.pb.h"

namespace skein {

// The run's progress for reports: updated by the training loop, read by heartbeats. Thread-safe.
class ProgressTracker {
 public:
  // `metrics`: names of the environment's episode metrics, P of them. `last`: of the checkpoint from which the run goes
  // on.
  ProgressTracker(uint64_t target_env_steps, uint64_t env_steps, uint64_t iteration, uint64_t episodes,
                  std::vector<std::string> metrics = {}, const EpisodeWindow& last = {});

  struct Iteration {
    uint64_t env_steps = 0;  // Of this iteration.
    int64_t samples = 0;     // Of this rank: agent steps whose alive flag is set.
    uint64_t policy_lag = 0;
    uint64_t policy_version = 0;  // Published after it.
    UpdateStats stats;
    const std::vector<double>* episode_returns = nullptr;
    const std::vector<int64_t>* episode_lengths = nullptr;
    const std::vector<float>* episode_metrics = nullptr;  // [episodes, P]; null if P = 0
    uint64_t failed_episodes = 0;                         // In none of those.
  };
  void CountIteration(absl::Duration now, const Iteration& iteration);
  // Sets the counts after the ranks have met again, to those of the state that they continue from.
  void GoOnFrom(uint64_t env_steps, uint64_t iteration, uint64_t episodes);
  // `phase` of `phases`, counted from 1.
  void SetPhase(uint32_t phase, uint32_t phases);
  void SetState(v1::RunState state);
  void SetCheckpoint(const std::string& path, const std::string& digest);
  void SetError(const std::string& error);
  void AddWarning(const std::string& warning);
  void SetPolicyVersion(uint64_t version);
  // Of the last iteration; those of earlier ones stay.
  void SetCallbackMetrics(const std::map<std::string, double>& metrics);

  // Everything except account, queue and stages, which the caller adds.
  v1::RunProgress Snapshot(absl::Duration now) const;
  uint64_t env_steps() const;
  // Standard deviation of the last 100 episodes' returns divided by the size of their mean. NaN: fewer than two
  // episodes, or all returns are 0.
  double ReturnSpread() const;
  EpisodeWindow LastEpisodes() const;

 private:
  struct Episode {
    double episode_return;
    int64_t length;
    std::vector<float> metrics;  // [P]
  };

  // Takes episodes in, and sets the means. `metrics` null: they have none.
  void AddEpisodes(const std::vector<double>& returns, const std::vector<int64_t>& lengths,
                   const std::vector<float>* metrics) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::vector<std::string> metrics_;
  mutable absl::Mutex mu_;
  v1::RunProgress progress_ ABSL_GUARDED_BY(mu_);
  RateWindow rate_ ABSL_GUARDED_BY(mu_);
  std::deque<Episode> last_episodes_ ABSL_GUARDED_BY(mu_);  // At most EpisodeWindow::kEpisodes.
};

}  // namespace skein
