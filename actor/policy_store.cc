// SPDX-License-Identifier: Apache-2.0
#include "actor/policy_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "policy/policy.h"

namespace skein {
namespace {

// The learner keeps two; one more covers the moment in which the next arrives.
constexpr size_t kKept = 3;

}  // namespace

void PolicyStore::BeginStream(uint64_t stream) {
  absl::MutexLock lock(&mu_);
  stream_ = stream;
  policies_.clear();
}

void PolicyStore::Put(uint64_t stream, std::shared_ptr<const Policy> policy) {
  absl::MutexLock lock(&mu_);
  if (stream != stream_) return;
  if (!policies_.empty() && policy->version() <= policies_.back()->version()) return;
  policies_.push_back(std::move(policy));
  if (policies_.size() > kKept) policies_.pop_front();
}

absl::StatusOr<std::shared_ptr<const Policy>> PolicyStore::WaitFor(uint64_t stream, uint64_t version) {
  absl::MutexLock lock(&mu_);
  const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopped_ || stream_ != stream || (!policies_.empty() && policies_.back()->version() >= version);
  };
  mu_.Await(absl::Condition(&ready));
  if (stopped_ || stream_ != stream) return absl::CancelledError("the connection that the ticket came over is gone");
  if (version == 0) return policies_.back();
  for (const auto& policy : policies_) {
    if (policy->version() == version) return policy;
  }
  return absl::NotFoundError(absl::StrCat("policy ", version, " is gone, the newest is ", policies_.back()->version()));
}

uint64_t PolicyStore::newest_version() const {
  absl::MutexLock lock(&mu_);
  return policies_.empty() ? 0 : policies_.back()->version();
}

void PolicyStore::Stop() {
  absl::MutexLock lock(&mu_);
  stopped_ = true;
}

}  // namespace skein
