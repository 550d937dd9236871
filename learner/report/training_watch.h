// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "learner/algorithm/update_stats.h"
#include "learner/algorithm/watch_rule.h"

namespace skein {

// Notices where training looks wrong and says so in words for people, once for each rule. The algorithm's rules judge
// its statistics; those here judge stage times, and whether any episode is completed. docs/tuning.md explains them.
//   WatchRules, UpdateStats, stage times -> warnings -> RunProgress, log, terminal, status page
// Pure. Not thread-safe.
class TrainingWatch {
 public:
  static constexpr double kMinReturnSpread = 0.02;  // Below it returns do not vary: a solved task, say.
  static constexpr double kTimedSeconds = 60;       // Stage times are compared over so long at least,
  static constexpr size_t kTimedIterations = 5;     // and over so many iterations.
  static constexpr double kMaxWaiting = 0.9;        // Share of the learner's time that it waits for fragments.
  static constexpr double kMaxUpdating = 0.95;      // Share that it updates, while several actors wait for it.
  static constexpr uint64_t kFailedEpisodes = 20;   // Of this session, while none was completed.

  explicit TrainingWatch(std::vector<WatchRule> rules);

  // After an iteration. All seconds are since the process started.
  struct Iteration {
    const UpdateStats* stats = nullptr;
    double progress = 0;              // Share of the run's env steps that are done.
    double seconds = 0;               // Wall time.
    double waiting_seconds = 0;       // Of it: waiting for fragments.
    double update_seconds = 0;        // Of it: updating.
    int actors = 0;                   // Connected actor processes; 0 in mode on_device.
    uint64_t completed_episodes = 0;  // Of this iteration.
    uint64_t failed_episodes = 0;     // The same.
    // Mean return of the last episodes; NaN: not known. While it is higher than the first known one by more than their
    // standard deviation, no rule of WatchRule::varied_returns warns.
    double return_mean = std::numeric_limits<double>::quiet_NaN();
    // Standard deviation of the last episodes' returns, as a share of their mean's size; NaN: not known.
    double return_spread = std::numeric_limits<double>::quiet_NaN();
  };
  // New warnings, one sentence or two each; usually none.
  std::vector<std::string> Observe(const Iteration& iteration);

 private:
  struct Watched {
    WatchRule rule;
    std::deque<double> values = {};  // The last kWindow at most.
    uint64_t updates = 0;            // That counted.
    double best_mean = -std::numeric_limits<double>::infinity();
    bool warned = false;
  };

  std::optional<std::string> Judge(Watched* watched, const Iteration& iteration) const;
  // Both compare with `since_`.
  std::optional<std::string> CheckStarving(const Iteration& now) const;
  std::optional<std::string> CheckActorsWait(const Iteration& now) const;
  std::optional<std::string> CheckFailing() const;

  std::vector<Watched> watched_;
  double first_return_ = std::numeric_limits<double>::quiet_NaN();  // Iteration::return_mean when it was first known.
  double best_return_ = first_return_;                              // The highest.
  std::optional<Iteration> since_;  // Where the present comparison of stage times began; stats is null.
  size_t timed_iterations_ = 0;     // Since then.
  uint64_t completed_episodes_ = 0, failed_episodes_ = 0;  // So far.
  bool warned_starving_ = false, warned_actors_wait_ = false, warned_failing_ = false;
};

}  // namespace skein
