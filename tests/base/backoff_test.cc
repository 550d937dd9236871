// SPDX-License-Identifier: Apache-2.0
#include "base/net/backoff.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(Backoff, DoublesTheLongestDelayUpToTheCap) {
  Backoff backoff(absl::Milliseconds(100), absl::Seconds(1));
  // 100, 200, 400, 800, then 1000 for ever.
  for (const int longest : {100, 200, 400, 800, 1000, 1000, 1000}) {
    const absl::Duration delay = backoff.Next();
    EXPECT_GE(delay, absl::Milliseconds(50));
    EXPECT_LE(delay, absl::Milliseconds(longest));
  }
}

TEST(Backoff, SpreadsTheDelays) {
  Backoff backoff(absl::Milliseconds(100), absl::Seconds(1));
  for (int i = 0; i < 10; ++i) backoff.Next();
  absl::Duration least = absl::Seconds(1);
  absl::Duration most = absl::ZeroDuration();
  for (int i = 0; i < 100; ++i) {
    const absl::Duration delay = backoff.Next();
    least = std::min(least, delay);
    most = std::max(most, delay);
  }
  // Uniform in [50, 1000] ms: that all of 100 lie in one half has probability 2 * 2^-100.
  EXPECT_LT(least, absl::Milliseconds(525));
  EXPECT_GT(most, absl::Milliseconds(525));
}

TEST(Backoff, BeginsAgainAfterReset) {
  Backoff backoff(absl::Milliseconds(10), absl::Hours(1));
  for (int i = 0; i < 100; ++i) backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Milliseconds(10));
}

TEST(Backoff, NeverPassesACapBelowItsBase) {
  Backoff backoff(absl::Seconds(10), absl::Milliseconds(1));
  for (int i = 0; i < 10; ++i) EXPECT_LE(backoff.Next(), absl::Milliseconds(1));
}

}  // namespace
}  // namespace skein
