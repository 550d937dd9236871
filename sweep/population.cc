// SPDX-License-Identifier: Apache-2.0
#include "sweep/population.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/number/philox.h"
#include "sweep/sampler.h"

namespace skein {
namespace {

// The draws of who is copied, beside those of the parameters of trials.
constexpr uint64_t kDonorDraws = uint64_t{1} << 31;

// The trial of each member that trained up to `rung`; nullptr: there is none yet.
std::vector<const Trial*> MembersAt(const std::vector<Trial>& trials, uint32_t rung, uint32_t size) {
  std::vector<const Trial*> members(size, nullptr);
  for (const Trial& one : trials) {
    if (one.group < size && (!one.origin || one.origin->rung < rung)) members[one.group] = &one;  // The latest.
  }
  return members;
}

}  // namespace

Scheduler::Verdict Population::Judge(const std::vector<Trial>& trials, bool) const {
  Verdict verdict;
  verdict.wants_new = trials.size() < size_;
  verdict.group = static_cast<uint32_t>(trials.size());
  if (verdict.wants_new) return verdict;
  for (uint32_t rung = 0; rung + 1 < rungs_.size(); ++rung) {
    const std::vector<const Trial*> members = MembersAt(trials, rung, size_);
    std::vector<const Trial*> ranked, lost;
    for (const Trial* one : members) {
      if (one == nullptr) return verdict;
      if (one->has_result(rung)) {
        ranked.push_back(one);
      } else if (one->state != TrialState::kRunning) {
        lost.push_back(one);
      } else {
        return verdict;  // The generation is not finished.
      }
    }
    if (ranked.empty()) return verdict;
    std::sort(ranked.begin(), ranked.end(), [rung](const Trial* a, const Trial* b) {
      return std::tuple(-a->results.at(rung), a->number) < std::tuple(-b->results.at(rung), b->number);
    });
    const auto share = static_cast<size_t>(quantile_ * static_cast<double>(size_));
    const size_t best = std::clamp<size_t>(share, 1, ranked.size());
    const size_t worst = std::min(share - std::min(share, lost.size()), ranked.size() - best);
    lost.insert(lost.end(), ranked.end() - static_cast<ptrdiff_t>(worst), ranked.end());
    for (const Trial* loser : lost) {
      const bool copied = std::any_of(trials.begin(), trials.end(), [&](const Trial& one) {
        return one.group == loser->group && one.origin && one.origin->rung == rung;
      });
      if (copied) continue;
      RandomStream random(seed_, kSweepRandom, rung, kDonorDraws + loser->group);
      const Trial* const donor = ranked[random.Below(static_cast<uint32_t>(best))];
      verdict.copies.push_back({loser->group, loser->number, donor->number, rung});
    }
    for (size_t i = 0; i + worst < ranked.size(); ++i) {
      if (ranked[i]->waits() && ranked[i]->rung == rung) verdict.promote.push_back(ranked[i]->number);
    }
    if (!verdict.copies.empty() || !verdict.promote.empty()) return verdict;
  }
  return verdict;
}

}  // namespace skein
