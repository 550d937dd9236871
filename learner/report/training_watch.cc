// SPDX-License-Identifier: Apache-2.0
#include "learner/report/training_watch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "absl/strings/str_format.h"

namespace skein {
namespace {

// Whether the stage times since `since` can be judged.
bool LongEnough(double seconds, size_t iterations) {
  return seconds >= TrainingWatch::kTimedSeconds && iterations >= TrainingWatch::kTimedIterations;
}

}  // namespace

std::vector<std::string> TrainingWatch::Observe(const Iteration& iteration) {
  Take(iteration);
  std::vector<std::string> warnings;
  for (int kind = 0; kind < kKinds; ++kind) {
    if (warned_[kind]) continue;
    if (auto warning = Check(static_cast<Kind>(kind), iteration)) {
      warned_[kind] = true;
      warnings.push_back(*std::move(warning));
    }
  }
  ++timed_iterations_;
  if (!since_ || LongEnough(iteration.seconds - since_->seconds, timed_iterations_)) {
    since_ = iteration;
    since_->stats = nullptr;
    timed_iterations_ = 0;
  }
  return warnings;
}

void TrainingWatch::Take(const Iteration& iteration) {
  constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
  const bool equal_returns = iteration.return_spread < kMinReturnSpread;  // Not if it is not known.
  if (!equal_returns) ++critic_updates_;
  for (Mean* mean : {&kl_, &clip_, &explained_, &entropy_}) {
    const double value = iteration.stats->Get(mean->name, kAbsent);
    if (!std::isfinite(value) || (mean == &explained_ && equal_returns)) continue;
    mean->values.push_back(value);
    if (mean->values.size() > kWindow) mean->values.pop_front();
  }
}

std::optional<double> TrainingWatch::Recent(const Mean& mean) const {
  if (mean.values.size() < kWindow) return std::nullopt;
  double sum = 0;
  for (const double value : mean.values) sum += value;
  return sum / static_cast<double>(kWindow);
}

std::optional<std::string> TrainingWatch::Check(Kind kind, const Iteration& iteration) {
  switch (kind) {
    case kKl:
      return CheckKl();
    case kClip:
      return CheckClip();
    case kCritic:
      return CheckCritic();
    case kEntropy:
      return CheckEntropy(iteration.progress);
    case kStarving:
      return CheckStarving(iteration);
    case kActorsWait:
      return CheckActorsWait(iteration);
    case kKinds:
      break;
  }
  return std::nullopt;
}

std::optional<std::string> TrainingWatch::CheckKl() const {
  const auto kl = Recent(kl_);
  if (!kl || *kl <= kMaxKl) return std::nullopt;
  return absl::StrFormat(
      "each update changes the policy very much: the approximate KL divergence between the policy before and after it "
      "is %.2f (mean of %d updates); 0.01 to 0.1 is usual. Learning may break down. Try a lower learning rate, fewer "
      "epochs, or a limit on it (kl_stop, e.g. 0.05).",
      *kl, kWindow);
}

std::optional<std::string> TrainingWatch::CheckClip() const {
  const auto clip = Recent(clip_);
  if (!clip || *clip <= kMaxClipFraction) return std::nullopt;
  return absl::StrFormat(
      "%.0f %% of the samples are clipped (mean of %d updates); 5 to 40 %% is usual. Updates go further than the data "
      "that they are computed from allow. Try a lower learning rate, fewer epochs, or larger minibatches.",
      100 * *clip, kWindow);
}

std::optional<std::string> TrainingWatch::CheckCritic() {
  const auto explained = Recent(explained_);
  if (!explained) return std::nullopt;
  best_explained_ = std::max(best_explained_, *explained);
  if (critic_updates_ < kCriticUpdates || best_explained_ >= kMinExplained) return std::nullopt;
  return absl::StrFormat(
      "after %d updates the value function still predicts returns no better than their mean: explained variance is "
      "%.2f, where 1 is perfect and 0 is useless. Advantages are then mostly noise. Are rewards found at all? If they "
      "are rare, try a wider model.init_log_std or an entropy coefficient; otherwise another learning rate or gamma.",
      critic_updates_, *explained);
}

std::optional<std::string> TrainingWatch::CheckEntropy(double progress) const {
  const auto entropy = Recent(entropy_);
  if (!entropy || progress > 0.5) return std::nullopt;  // Late in a run a policy may have made up its mind.
  if (discrete_) {
    const double most = std::log(static_cast<double>(action_size_));
    if (*entropy >= kMinEntropyShare * most) return std::nullopt;
    return absl::StrFormat(
        "the policy has stopped exploring after %.0f %% of the run: its entropy is %.3f of at most %.2f, so it nearly "
        "always chooses the same. It cannot find anything better any more. Try a lower learning rate or a higher "
        "entropy coefficient.",
        100 * progress, *entropy, most);
  }
  // A normal distribution has the entropy log(std) + log(2 pi e) / 2 for each dimension.
  const double log_std =
      *entropy / static_cast<double>(action_size_) - 0.5 * std::log(2 * std::numbers::pi * std::numbers::e);
  if (log_std >= std::log(kMinActionStd)) return std::nullopt;
  return absl::StrFormat(
      "the policy has stopped exploring after %.0f %% of the run: the standard deviation of its actions is about %.2g. "
      "It cannot find anything better any more. Try a lower learning rate or a higher entropy coefficient.",
      100 * progress, std::exp(log_std));
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

}  // namespace skein
