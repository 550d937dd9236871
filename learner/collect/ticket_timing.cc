// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/ticket_timing.h"

#include <algorithm>

namespace skein {

TicketDeadlines DeadlinesOf(absl::Duration service, absl::Duration fastest, double per_runner) {
  if (fastest == absl::ZeroDuration()) return {kFirstCopy, kMostPatience, kVoidInHand, absl::InfiniteDuration()};
  const absl::Duration own = service == absl::ZeroDuration() ? fastest : service;
  const absl::Duration usual = own * per_runner, void_unserved = kUnserved * own;
  const absl::Duration most = std::max(kMostPatience, kMostTimesFastest * fastest);
  return {.late = kLate * usual,
          .taken_back = std::clamp(kUnserved * usual, kLeastPatience, most),
          .void_free = std::min(void_unserved, std::max(kVoidInHand, kLate * usual)),
          .void_unserved = void_unserved};
}

}  // namespace skein
