// SPDX-License-Identifier: Apache-2.0
#include "learner/report/training_watch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"

namespace skein {
namespace {

// Whether the stage times since `since` can be judged.
bool LongEnough(double seconds, size_t iterations) {
  return seconds >= TrainingWatch::kTimedSeconds && iterations >= TrainingWatch::kTimedIterations;
}

// Whether episodes return more than they did at first, by more than they differ.
bool HaveRisen(double first_return, const TrainingWatch::Iteration& now) {
  return now.return_mean - first_return > now.return_spread * std::abs(now.return_mean);
}

// Whether episodes return less than half of what they had once gained over the first ones.
bool HaveFallen(double first_return, double best_return, double now) {
  return best_return - now > 0.5 * (best_return - first_return);
}

}  // namespace

TrainingWatch::TrainingWatch(std::vector<WatchRule> rules) {
  for (WatchRule& rule : rules) watched_.push_back({std::move(rule)});
}

std::vector<std::string> TrainingWatch::Observe(const Iteration& iteration) {
  if (std::isnan(first_return_)) first_return_ = best_return_ = iteration.return_mean;
  if (iteration.return_mean > best_return_) best_return_ = iteration.return_mean;
  std::vector<std::string> warnings;
  const auto warn = [&warnings](std::optional<std::string> warning, bool* warned) {
    if (!warning || *warned) return;
    *warned = true;
    warnings.push_back(*std::move(warning));
  };
  for (Watched& watched : watched_) warn(Judge(&watched, iteration), &watched.warned);
  warn(CheckStarving(iteration), &warned_starving_);
  warn(CheckActorsWait(iteration), &warned_actors_wait_);
  completed_episodes_ += iteration.completed_episodes;
  failed_episodes_ += iteration.failed_episodes;
  warn(CheckFailing(), &warned_failing_);
  ++timed_iterations_;
  if (!since_ || LongEnough(iteration.seconds - since_->seconds, timed_iterations_)) {
    since_ = iteration;
    since_->stats = nullptr;
    timed_iterations_ = 0;
  }
  return warnings;
}

std::optional<std::string> TrainingWatch::Judge(Watched* watched, const Iteration& iteration) const {
  const WatchRule& rule = watched->rule;
  std::deque<double>& values = watched->values;
  const double value = iteration.stats->Get(rule.stat, std::numeric_limits<double>::quiet_NaN());
  const bool equal_returns = iteration.return_spread < kMinReturnSpread;  // Not if it is not known.
  if (std::isfinite(value) && !(rule.varied_returns && equal_returns)) {
    ++watched->updates;
    values.push_back(value);
    if (values.size() > WatchRule::kWindow) values.pop_front();
  }
  if (values.size() < WatchRule::kWindow) return std::nullopt;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(WatchRule::kWindow);
  watched->best_mean = std::max(watched->best_mean, mean);
  const double judged = rule.good == WatchRule::Good::kOnceAtLeast ? watched->best_mean : mean;
  const bool good = rule.good == WatchRule::Good::kAtMost ? judged <= rule.limit : judged >= rule.limit;
  if (good || watched->updates < rule.patience) return std::nullopt;
  if (iteration.progress > rule.until_progress && !HaveFallen(first_return_, best_return_, iteration.return_mean)) {
    return std::nullopt;
  }
  if (rule.varied_returns && HaveRisen(first_return_, iteration)) return std::nullopt;
  return rule.advice({.mean = judged, .updates = watched->updates, .progress = iteration.progress});
}

std::optional<std::string> TrainingWatch::CheckStarving(const Iteration& now) const {
  if (!since_ || now.actors == 0 || !LongEnough(now.seconds - since_->seconds, timed_iterations_ + 1)) {
    return std::nullopt;
  }
  const double share = (now.waiting_seconds - since_->waiting_seconds) / (now.seconds - since_->seconds);
  if (share <= kMaxWaiting) return std::nullopt;
  return absl::StrFormat(
      "the learner waits for actors %.0f %% of the time: stepping the environments is what limits this run. More "
      "runners make it faster, here with --runners or on other nodes with skein worker; each runner needs an "
      "environment group of its own (--envs / --envs-per-runner).",
      100 * share);
}

std::optional<std::string> TrainingWatch::CheckActorsWait(const Iteration& now) const {
  if (!since_ || now.actors < 2 || !LongEnough(now.seconds - since_->seconds, timed_iterations_ + 1)) {
    return std::nullopt;
  }
  const double share = (now.update_seconds - since_->update_seconds) / (now.seconds - since_->seconds);
  if (share <= kMaxUpdating) return std::nullopt;
  return absl::StrFormat(
      "%d actors wait for the learner most of the time: updates take %.0f %% of it, so fewer actors would do as well. "
      "For a faster run try fewer epochs, larger minibatches, more learner.torch_threads, a GPU or more learners.",
      now.actors, 100 * share);
}

std::optional<std::string> TrainingWatch::CheckFailing() const {
  if (completed_episodes_ > 0 || failed_episodes_ < kFailedEpisodes) return std::nullopt;
  return absl::StrFormat(
      "each of the %d episodes that have ended failed in a step of the environment, so no return is known. The actors' "
      "logs say why; skein env check looks for the cause.",
      failed_episodes_);
}

}  // namespace skein
