// SPDX-License-Identifier: Apache-2.0
#include "learner/run/run_accounts.h"

#include "learner/collect/step_account.h"

namespace skein {

void RunAccounts::Begin(const v1::StepAccount& account) {
  absl::MutexLock lock(&mu_);
  own_ = account;
}

void RunAccounts::Count(uint64_t collected, uint64_t trained) {
  v1::StepAccount account;
  {
    absl::MutexLock lock(&mu_);
    own_.set_collected(own_.collected() + collected);
    own_.set_trained(own_.trained() + trained);
    own_.set_pending(own_.pending() + collected - trained);
    account = own_;
  }
  metrics_->SetAccount(account, 0);
}

void RunAccounts::SettleOwn() {
  absl::MutexLock lock(&mu_);
  own_ = Settled(own_, 0);
}

void RunAccounts::SetOthers(const v1::StepAccount& others) {
  absl::MutexLock lock(&mu_);
  others_ = others;
}

void RunAccounts::SetLost(const v1::StepAccount& lost) {
  absl::MutexLock lock(&mu_);
  lost_ = lost;
}

v1::StepAccount RunAccounts::own() const {
  if (const Collector* const collector = collector_; collector != nullptr) return collector->account();
  absl::MutexLock lock(&mu_);
  return own_;
}

v1::StepAccount RunAccounts::lost() const {
  absl::MutexLock lock(&mu_);
  return lost_;
}

v1::StepAccount RunAccounts::total() const {
  v1::StepAccount account = own();
  absl::MutexLock lock(&mu_);
  Add(others_, &account);
  Add(lost_, &account);
  return account;
}

}  // namespace skein
