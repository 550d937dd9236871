// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace skein {

// Limits the rate of calls per client by a token bucket of `burst` calls, refilled at `per_second`. A client is one
// connection (grpc::ServerContext::peer()). At most `clients` clients have their own bucket; the others share one.
// Thread-safe.
class CallQuota {
 public:
  struct Options {
    double per_second = 1000;  // A member makes a few calls per second.
    double burst = 5000;
    size_t clients = 4096;
  };
  CallQuota();
  explicit CallQuota(const Options& options) : options_(options) {}

  // Takes one call at `now` (monotonic). ResourceExhausted: too many calls; the message has the limit.
  absl::Status Take(const std::string& client, absl::Duration now);

 private:
  struct Bucket {
    double calls = 0;  // Calls that are allowed now.
    absl::Duration filled;
  };
  // Removes full buckets: a new bucket starts full, so nothing is lost.
  void Forget(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fill(Bucket* bucket, absl::Duration now) const;

  const Options options_;
  absl::Mutex mu_;
  std::map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mu_);
  absl::Duration forgotten_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();  // Time of the last Forget().
};

}  // namespace skein
