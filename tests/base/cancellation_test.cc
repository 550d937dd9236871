// SPDX-License-Identifier: Apache-2.0
#include "base/process/cancellation.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

TEST(Cancellation, CallsBackOnceAndKeepsTheFirstReason) {
  Cancellation cancellation;
  int calls = 0;
  cancellation.OnCancel([&] { ++calls; });
  EXPECT_TRUE(cancellation.status().ok());
  cancellation.Cancel(absl::FailedPreconditionError("first"));
  cancellation.Cancel(absl::AbortedError("second"));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(cancellation.status(), absl::FailedPreconditionError("first"));
}

TEST(Cancellation, CallsBackAtOnceIfItHasBeenCancelled) {
  Cancellation cancellation;
  cancellation.Cancel();
  EXPECT_TRUE(absl::IsCancelled(cancellation.status()));
  int calls = 0;
  cancellation.OnCancel([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(Cancellation, DoesNotCallWhatWasRemovedOrReplaced) {
  Cancellation cancellation;
  int first = 0, second = 0;
  cancellation.OnCancel([&] { ++first; });
  cancellation.OnCancel([&] { ++second; });
  cancellation.OnCancel({});
  cancellation.Cancel();
  EXPECT_EQ(first + second, 0);
}

}  // namespace
}  // namespace skein
