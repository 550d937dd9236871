// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "absl/time/time.h"

namespace skein {

// Measures how long a process that is asked regularly has been silent, without the time for which the process that
// asks was late itself: on a machine that is overloaded, or was suspended, silence of that length proves nothing.
//   Answered | Missed -> Silence.   Times are monotonic. Not thread-safe.
class AnswerClock {
 public:
  void Answered(absl::Duration now) {
    answered_ = now;
    late_ = absl::ZeroDuration();
  }
  // A question that was to be asked at `due` was asked at `asked` and given up at `now`, which was to be `patience`
  // later.
  void Missed(absl::Duration due, absl::Duration asked, absl::Duration patience, absl::Duration now) {
    late_ += std::max(asked - due, absl::ZeroDuration()) + std::max(now - asked - patience, absl::ZeroDuration());
  }
  absl::Duration Silence(absl::Duration now) const { return std::max(now - answered_ - late_, absl::ZeroDuration()); }

 private:
  absl::Duration answered_;  // The last time.
  absl::Duration late_;      // Since then.
};

}  // namespace skein
