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

// How many calls each client may make: a bucket of `burst` calls that fills again at `per_second`. A client is one
// connection (grpc::ServerContext::peer()). Remembers at most `clients` of them; those beyond share one bucket.
// Thread-safe.
class CallQuota {
 public:
  struct Options {
    double per_second = 1000;  // A member makes a few.
    double burst = 5000;
    size_t clients = 4096;
  };
  CallQuota();
  explicit CallQuota(const Options& options) : options_(options) {}

  // One call at `now` (of a clock that never goes back). ResourceExhausted: too many; says how many are allowed.
  absl::Status Take(const std::string& client, absl::Duration now);

 private:
  struct Bucket {
    double calls = 0;  // That may be made now.
    absl::Duration filled;
  };
  // Forgets clients whose buckets are full again: they start with a full one anyway.
  void Forget(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fill(Bucket* bucket, absl::Duration now) const;

  const Options options_;
  absl::Mutex mu_;
  std::map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mu_);
  absl::Duration forgotten_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();  // When Forget() looked last.
};

}  // namespace skein
