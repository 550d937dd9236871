// SPDX-License-Identifier: Apache-2.0
#include "cli/silent_learners.h"

#include <unistd.h>

#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class SilentLearnersTest : public testing::Test {
 protected:
  // A status in which process 42 is a member that was heard of `age` seconds ago, or is none (`age` < 0).
  std::vector<SilentLearners::Hanging> Look(double age, const std::string& host = "here",
                                            const std::string& role = "learner") {
    v1::StatusResponse status;
    if (age >= 0) {
      v1::MemberStatus* const member = status.add_members();
      member->set_role(role);
      member->set_pid(42);
      member->set_host(host);
      member->set_seconds_since_heartbeat(age);
    }
    return silent_.Look(status, running_, now_);
  }

  absl::Duration now_ = absl::Seconds(1000);
  uint64_t ticks_ = 7;
  std::vector<pid_t> running_ = {42};
  SilentLearners silent_{{.heartbeat = absl::Seconds(1), .lease = absl::Seconds(5), .host = "here"},
                         [this](pid_t pid) { return pid == 42 ? ticks_ : 0; }};
};

TEST_F(SilentLearnersTest, OneThatWasExpelledHangsALeaseAndTwoHeartbeatsAfterItsLast) {
  EXPECT_THAT(Look(0.5), IsEmpty());  // Heard at 999.5.
  now_ += absl::Seconds(5);
  EXPECT_THAT(Look(-1), IsEmpty());  // Silent for 5.5 s.
  now_ += absl::Seconds(1);
  EXPECT_THAT(Look(-1), IsEmpty());  // 6.5 s.
  now_ += absl::Seconds(1);
  const auto hanging = Look(-1);  // 7.5 s >= 5 + 2 * 1.
  ASSERT_THAT(hanging, SizeIs(1));
  EXPECT_EQ(hanging[0].pid, 42);
  EXPECT_EQ(hanging[0].silence, absl::Seconds(7.5));
}

TEST_F(SilentLearnersTest, AMemberDoesNotHangHoweverOldItsHeartbeat) {
  Look(0);
  now_ += absl::Seconds(100);
  EXPECT_THAT(Look(60), IsEmpty());
}

TEST_F(SilentLearnersTest, OneThatUsesTheProcessorDoesNotHang) {
  Look(0);
  for (int second = 0; second < 20; ++second) {
    now_ += absl::Seconds(1);
    ticks_ += second % 4 == 0 ? 1 : 0;
    EXPECT_THAT(Look(-1), IsEmpty()) << second;
  }
  now_ += absl::Seconds(5);
  EXPECT_THAT(Look(-1), SizeIs(1));
}

TEST_F(SilentLearnersTest, OneThatHasNotJoinedDoesNotHang) {
  for (int second = 0; second < 20; ++second) {
    now_ += absl::Seconds(1);
    EXPECT_THAT(Look(-1), IsEmpty());
    EXPECT_THAT(Look(0, "another machine"), IsEmpty());
    EXPECT_THAT(Look(0, "here", "actor"), IsEmpty());
  }
}

TEST_F(SilentLearnersTest, OneThatJoinsAgainBeginsAnew) {
  Look(0);
  now_ += absl::Seconds(6);
  EXPECT_THAT(Look(-1), IsEmpty());
  EXPECT_THAT(Look(0), IsEmpty());
  now_ += absl::Seconds(6);
  EXPECT_THAT(Look(-1), IsEmpty());
}

TEST_F(SilentLearnersTest, ProcessesThatHaveEndedAreForgotten) {
  Look(0);
  running_.clear();
  Look(-1);
  running_ = {42};  // Another process with its number, which has not joined.
  now_ += absl::Seconds(100);
  EXPECT_THAT(Look(-1), IsEmpty());
}

TEST(ProcessorTicks, AreThoseOfARunningProcess) {
  const uint64_t before = ProcessorTicks(getpid());
  volatile uint64_t sum = 0;
  while (ProcessorTicks(getpid()) == before) {
    for (int i = 0; i < 100000; ++i) sum = sum + 1;
  }
  EXPECT_EQ(ProcessorTicks(0), 0u);
}

}  // namespace
}  // namespace skein
