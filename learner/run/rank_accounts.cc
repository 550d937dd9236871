// SPDX-License-Identifier: Apache-2.0
#include "learner/run/rank_accounts.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "learner/collect/step_account.h"

namespace skein {

void RankAccounts::BeginUpdate(std::vector<uint64_t> steps) {
  in_flight_ = std::move(steps);
  in_update_ = true;
}

void RankAccounts::Tell(std::vector<v1::StepAccount> accounts) {
  told_ = std::move(accounts);
  in_flight_.clear();
}

v1::StepAccount RankAccounts::Settle(uint32_t incarnation, const std::vector<uint32_t>& there,
                                     v1::StepAccount lost) const {
  for (size_t place = 0; place < incarnations_.size() && place < told_.size(); ++place) {
    if (incarnations_[place] == incarnation || absl::c_linear_search(there, incarnations_[place])) continue;
    const bool trained = !in_update_ && place < in_flight_.size();
    Add(Settled(told_[place], trained ? in_flight_[place] : 0), &lost);
  }
  return lost;
}

}  // namespace skein
