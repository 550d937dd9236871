// SPDX-License-Identifier: Apache-2.0
#include "base/net/call_quota.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

constexpr absl::Duration kStart = absl::Seconds(100);

int Allowed(CallQuota* quota, const std::string& client, absl::Duration now, int calls) {
  int allowed = 0;
  for (int i = 0; i < calls; ++i) allowed += quota->Take(client, now).ok();
  return allowed;
}

TEST(CallQuota, AllowsABurstAndThenARate) {
  CallQuota quota({.per_second = 10, .burst = 20});
  EXPECT_EQ(Allowed(&quota, "a", kStart, 30), 20);
  EXPECT_EQ(Allowed(&quota, "a", kStart + absl::Milliseconds(500), 30), 5);  // 10/s x 0.5 s.
  EXPECT_EQ(Allowed(&quota, "a", kStart + absl::Hours(1), 30), 20);          // Never more than a burst.
}

TEST(CallQuota, OneClientsFloodIsNotAnothers) {
  CallQuota quota({.per_second = 10, .burst = 20});
  EXPECT_EQ(Allowed(&quota, "flood", kStart, 1000), 20);
  EXPECT_EQ(Allowed(&quota, "member", kStart, 20), 20);
}

TEST(CallQuota, ARefusalSaysWhoAndHowMany) {
  CallQuota quota({.per_second = 10, .burst = 1});
  EXPECT_TRUE(quota.Take("ipv4:10.0.0.9:5000", kStart).ok());
  const absl::Status status = quota.Take("ipv4:10.0.0.9:5000", kStart);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "too many calls from ipv4:10.0.0.9:5000: at most 10 a second");
}

TEST(CallQuota, ClientsBeyondItsMemoryShareOneBucket) {
  CallQuota quota({.per_second = 10, .burst = 20, .clients = 100});
  for (int i = 0; i < 99; ++i) EXPECT_EQ(Allowed(&quota, absl::StrCat("client-", i), kStart, 1), 1);
  int allowed = 0;
  for (int i = 0; i < 1000; ++i) allowed += Allowed(&quota, absl::StrCat("stranger-", i), kStart, 1);
  EXPECT_EQ(allowed, 1 + 20);  // The hundredth has its own, the others one together.
  EXPECT_EQ(Allowed(&quota, "client-5", kStart, 30), 19);
  // Two seconds later all but client-5's are full again and forgotten: there is room for others.
  EXPECT_EQ(Allowed(&quota, "late-1", kStart + absl::Seconds(2), 30), 20);
  EXPECT_EQ(Allowed(&quota, "late-2", kStart + absl::Seconds(2), 30), 20);
}

}  // namespace
}  // namespace skein
