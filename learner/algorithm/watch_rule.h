// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace skein {

// A rule for one statistic of UpdateStats: its values while training goes well, and the advice if they are others.
//   Algorithm::WatchRules -> TrainingWatch -> warning
// A rule about a statistic that no update has never warns.
struct WatchRule {
  static constexpr size_t kWindow = 20;  // Updates that a mean is taken over. Single values are never judged.

  enum class Good {
    kAtMost,       // The mean of the last kWindow updates is at most `limit`.
    kAtLeast,      // It is at least `limit`.
    kOnceAtLeast,  // It has been at least `limit` once in this session.
  };
  struct Found {
    double mean = 0;       // Of kWindow updates: the last, with kOnceAtLeast the best.
    uint64_t updates = 0;  // That counted so far.
    double progress = 0;   // Of the run, in [0, 1].
  };

  std::string stat;  // Its name in UpdateStats.
  Good good = Good::kAtMost;
  double limit = 0;
  size_t patience = kWindow;    // Updates that must have counted before the rule may warn.
  double until_progress = 1;    // After this share of the run it warns only if returns have fallen.
  bool varied_returns = false;  // Only updates count where the returns of the last episodes differ.
  std::function<std::string(const Found&)> advice = {};  // What is wrong and what to try, one sentence or two each.
};

}  // namespace skein
