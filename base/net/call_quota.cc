// SPDX-License-Identifier: Apache-2.0
#include "base/net/call_quota.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace skein {
namespace {

constexpr char kOthers[] = "";  // No connection is called so.
constexpr absl::Duration kForgetPeriod = absl::Seconds(1);

}  // namespace

CallQuota::CallQuota() : CallQuota(Options()) {}

void CallQuota::Fill(Bucket* bucket, absl::Duration now) const {
  const double gained = absl::ToDoubleSeconds(now - bucket->filled) * options_.per_second;
  bucket->calls = std::min(options_.burst, bucket->calls + gained);
  bucket->filled = now;
}

void CallQuota::Forget(absl::Duration now) {
  forgotten_ = now;
  for (auto it = buckets_.begin(); it != buckets_.end();) {
    Fill(&it->second, now);
    it = it->second.calls >= options_.burst ? buckets_.erase(it) : std::next(it);
  }
}

absl::Status CallQuota::Take(const std::string& client, absl::Duration now) {
  absl::MutexLock lock(&mu_);
  auto found = buckets_.find(client);
  if (found == buckets_.end()) {
    if (buckets_.size() >= options_.clients && now - forgotten_ >= kForgetPeriod) Forget(now);
    const std::string& name = buckets_.size() < options_.clients ? client : kOthers;
    found = buckets_.emplace(name, Bucket{options_.burst, now}).first;
  }
  Bucket& bucket = found->second;
  Fill(&bucket, now);
  if (bucket.calls < 1) {
    return absl::ResourceExhaustedError(
        absl::StrCat("too many calls from ", client, ": at most ", options_.per_second, " a second"));
  }
  bucket.calls -= 1;
  return absl::OkStatus();
}

}  // namespace skein
