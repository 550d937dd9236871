// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "learner/algorithm/update_stats.h"

namespace skein {

// Notices where training looks wrong and says so in words for people, once for each kind. docs/tuning.md explains the
// rules and their numbers.   UpdateStats, stage times -> warnings -> RunProgress, log, terminal, status page
// Reads statistics by name: one that the algorithm does not have never warns. Pure. Not thread-safe.
class TrainingWatch {
 public:
  static constexpr size_t kWindow = 20;  // Updates that statistics are averaged over.
  static constexpr double kMaxKl = 0.2;  // Approximate KL divergence.
  static constexpr double kMaxClipFraction = 0.7;
  static constexpr size_t kCriticUpdates = 50;      // After so many the value function must have explained
  static constexpr double kMinExplained = 0.1;      // this part of the returns' variance at least once.
  static constexpr double kMinReturnSpread = 0.02;  // Below it there is nothing to explain: a solved task, say.
  static constexpr double kMinEntropyShare = 0.05;  // Of the entropy of equally likely choices.
  static constexpr double kMinActionStd = 0.01;     // Standard deviation of real actions.
  static constexpr double kTimedSeconds = 60;       // Stage times are compared over so long at least,
  static constexpr size_t kTimedIterations = 5;     // and over so many iterations.
  static constexpr double kMaxWaiting = 0.9;        // Share of the learner's time that it waits for fragments.
  static constexpr double kMaxUpdating = 0.95;      // Share that it updates, while several actors wait for it.

  // The environment's actions: one of `action_size` choices if discrete, else `action_size` reals.
  TrainingWatch(bool discrete, int64_t action_size) : discrete_(discrete), action_size_(action_size) {}

  // After an iteration. All seconds are since the process started.
  struct Iteration {
    const UpdateStats* stats = nullptr;
    double progress = 0;         // Share of the run's env steps that are done.
    double seconds = 0;          // Wall time.
    double waiting_seconds = 0;  // Of it: waiting for fragments.
    double update_seconds = 0;   // Of it: updating.
    int actors = 0;              // Connected actor processes; 0 in mode on_device.
    // Standard deviation of the last episodes' returns, as a share of their mean's size; NaN: not known.
    double return_spread = std::numeric_limits<double>::quiet_NaN();
  };
  // New warnings, one sentence or two each; usually none.
  std::vector<std::string> Observe(const Iteration& iteration);

 private:
  enum Kind { kKl, kClip, kCritic, kEntropy, kStarving, kActorsWait, kKinds };
  struct Mean {
    std::string_view name;
    std::deque<double> values = {};  // The last kWindow at most.
  };

  void Take(const Iteration& iteration);
  // The mean of the last kWindow updates; nullopt: there are fewer, or no such statistic.
  std::optional<double> Recent(const Mean& mean) const;
  std::optional<std::string> Check(Kind kind, const Iteration& iteration);
  std::optional<std::string> CheckKl() const;
  std::optional<std::string> CheckClip() const;
  std::optional<std::string> CheckCritic();
  std::optional<std::string> CheckEntropy(double progress) const;
  // Both compare with `since_`.
  std::optional<std::string> CheckStarving(const Iteration& now) const;
  std::optional<std::string> CheckActorsWait(const Iteration& now) const;

  const bool discrete_;
  const int64_t action_size_;
  Mean kl_{"kl"}, clip_{"clip_fraction"}, explained_{"explained_variance"}, entropy_{"entropy"};
  double best_explained_ = -1e300;  // The best mean of kWindow updates.
  uint64_t critic_updates_ = 0;     // Updates of which the value function could be judged.
  std::optional<Iteration> since_;  // Where the present comparison of stage times began; stats is null.
  size_t timed_iterations_ = 0;     // Since then.
  std::array<bool, kKinds> warned_ = {};
};

}  // namespace skein
