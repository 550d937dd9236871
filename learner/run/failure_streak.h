// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace skein {

// Failures in a row of something that is tried again and again, and whether it is time to give up. Pure: times are
// monotonic and passed in. Not thread-safe.
class FailureStreak {
 public:
  static constexpr int kFailures = 5;                           // So many at least,
  static constexpr absl::Duration kLasting = absl::Minutes(1);  // the first of them so long ago.

  void Note(bool succeeded, absl::Duration now) {
    if (succeeded) {
      length_ = 0;
      return;
    }
    if (length_++ == 0) first_ = now;
    last_ = now;
  }

  int length() const { return length_; }
  bool hopeless() const { return length_ >= kFailures && last_ - first_ >= kLasting; }

 private:
  int length_ = 0;
  absl::Duration first_, last_;
};

}  // namespace skein
