// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/actor_critic_rules.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace skein {
namespace {

constexpr size_t kCriticUpdates = 50;      // After so many the value function must have explained
constexpr double kMinExplained = 0.1;      // this part of the returns' variance at least once.
constexpr double kMinEntropyShare = 0.05;  // Of the entropy of equally likely choices.
constexpr double kMinActionStd = 0.01;     // Standard deviation of real actions.
constexpr double kExploring = 0.5;         // Later in a run a policy may have made up its mind, if it is a good one.

WatchRule ExplainedVariance() {
  WatchRule rule{.stat = "explained_variance", .good = WatchRule::Good::kOnceAtLeast, .limit = kMinExplained};
  rule.patience = kCriticUpdates;
  rule.varied_returns = true;
  rule.advice = [](const WatchRule::Found& found) {
    return absl::StrFormat(
        "after %d updates the value function still predicts returns no better than their mean: explained variance is "
        "%.2f, where 1 is perfect and 0 is useless. Advantages are then mostly noise. Are rewards found at all? If "
        "they are rare, try a wider model.init_log_std or an entropy coefficient; otherwise another learning rate or "
        "gamma.",
        found.updates, found.mean);
  };
  return rule;
}

WatchRule EntropyOfChoices(int64_t choices) {
  const double most = std::log(static_cast<double>(choices));
  WatchRule rule{.stat = "entropy", .good = WatchRule::Good::kAtLeast, .limit = kMinEntropyShare * most};
  rule.until_progress = kExploring;
  rule.advice = [most](const WatchRule::Found& found) {
    return absl::StrFormat(
        "the policy has stopped exploring after %.0f %% of the run: its entropy is %.3f of at most %.2f, so it nearly "
        "always chooses the same. It cannot find anything better any more. Try a lower learning rate or a higher "
        "entropy coefficient.",
        100 * found.progress, found.mean, most);
  };
  return rule;
}

WatchRule EntropyOfReals(int64_t reals) {
  // A normal distribution has the entropy log(std) + log(2 pi e) / 2 for each dimension.
  const auto size = static_cast<double>(reals);
  const double of_unit_std = 0.5 * (std::log(2 * M_PI) + 1);
  WatchRule rule{
      .stat = "entropy", .good = WatchRule::Good::kAtLeast, .limit = size * (std::log(kMinActionStd) + of_unit_std)};
  rule.until_progress = kExploring;
  rule.advice = [size, of_unit_std](const WatchRule::Found& found) {
    return absl::StrFormat(
        "the policy has stopped exploring after %.0f %% of the run: the standard deviation of its actions is about "
        "%.2g. It cannot find anything better any more. Try a lower learning rate or a higher entropy coefficient.",
        100 * found.progress, std::exp(found.mean / size - of_unit_std));
  };
  return rule;
}

}  // namespace

std::vector<WatchRule> ActorCriticRules(const PolicySpec& policy) {
  return {ExplainedVariance(),
          policy.discrete ? EntropyOfChoices(policy.action_size) : EntropyOfReals(policy.action_size)};
}

}  // namespace skein
