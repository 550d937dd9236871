// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace skein {

// Says in a line from time to time how far work is that is no training, and how long it will take:
//   reading the data: 40%, ETA 12 s
// Thread-safe.
class WorkProgress {
 public:
  using SayLine = std::function<void(const std::string& line)>;
  // `now`: when the work begins, by a clock that never goes back.
  WorkProgress(SayLine say, absl::Duration now) : say_(std::move(say)), began_(now), said_(now) {}

  // The share of `what` that is done now. Other work than that of the call before begins with this call.
  void Set(const std::string& what, double share, absl::Duration now);

 private:
  const SayLine say_;
  absl::Mutex mu_;
  std::string what_ ABSL_GUARDED_BY(mu_);
  absl::Duration began_ ABSL_GUARDED_BY(mu_), said_ ABSL_GUARDED_BY(mu_);
};

}  // namespace skein
