// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo/ppo_rules.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "learner/algorithm/actor_critic_rules.h"

namespace skein {
namespace {

constexpr double kMaxKl = 0.2;  // Approximate KL divergence.
constexpr double kMaxClipFraction = 0.7;

}  // namespace

std::vector<WatchRule> PpoRules(const PolicySpec& policy) {
  WatchRule kl{.stat = "kl", .good = WatchRule::Good::kAtMost, .limit = kMaxKl};
  kl.advice = [](const WatchRule::Found& found) {
    return absl::StrFormat(
        "each update changes the policy very much: the approximate KL divergence between the policy before and after "
        "it is %.2f (mean of %d updates); below 0.1 is usual. Learning may break down. Try a lower learning rate, "
        "fewer epochs, or a limit on it (kl_stop, e.g. 0.05).",
        found.mean, WatchRule::kWindow);
  };
  WatchRule clip{.stat = "clip_fraction", .good = WatchRule::Good::kAtMost, .limit = kMaxClipFraction};
  clip.advice = [](const WatchRule::Found& found) {
    return absl::StrFormat(
        "%.0f %% of the samples are clipped (mean of %d updates); 5 to 40 %% is usual. Updates go further than the "
        "data that they are computed from allow. Try a lower learning rate, fewer epochs, or larger minibatches.",
        100 * found.mean, WatchRule::kWindow);
  };
  std::vector<WatchRule> rules = {std::move(kl), std::move(clip)};
  for (WatchRule& rule : ActorCriticRules(policy)) rules.push_back(std::move(rule));
  return rules;
}

}  // namespace skein
