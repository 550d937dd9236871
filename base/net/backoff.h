// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/random/random.h"
#include "absl/time/time.h"

namespace skein {

// Exponential back-off with jitter: the n-th delay (n = 0, 1, ...) is uniform in [base/2, base * 2^n], capped.
// Not thread-safe.
class Backoff {
 public:
  Backoff(absl::Duration base, absl::Duration cap) : base_(base), cap_(cap) {}
  absl::Duration Next();
  void Reset() { attempt_ = 0; }

 private:
  absl::Duration base_;
  absl::Duration cap_;
  int attempt_ = 0;
  absl::BitGen bits_;
};

}  // namespace skein
