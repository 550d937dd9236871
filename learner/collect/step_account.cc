// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/step_account.h"

#include <algorithm>

namespace skein {

void Add(const v1::StepAccount& from, v1::StepAccount* to) {
  to->set_collected(to->collected() + from.collected());
  to->set_trained(to->trained() + from.trained());
  to->set_stale(to->stale() + from.stale());
  to->set_rejected(to->rejected() + from.rejected());
  to->set_lost(to->lost() + from.lost());
  to->set_pending(to->pending() + from.pending());
}

v1::StepAccount Settled(const v1::StepAccount& told, uint64_t trained) {
  const uint64_t known = std::min(told.pending(), trained);
  v1::StepAccount account = told;
  account.set_collected(told.collected() + trained - known);
  account.set_trained(told.trained() + trained);
  account.set_lost(told.lost() + told.pending() - known);
  account.set_pending(0);
  return account;
}

}  // namespace skein
