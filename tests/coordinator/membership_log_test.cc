// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership_log.h"

#include <algorithm>
#include <memory>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Not;

class MembershipLogTest : public testing::Test {
 protected:
  MembershipLogTest() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said_)));
  }
  ~MembershipLogTest() override { spdlog::set_default_logger(logger_); }

  void Log(MembershipChange::Kind kind, MonotonicTime now, const std::string& host = "node1") {
    MembershipChange change;
    change.kind = kind;
    change.member.id = "actor-1";
    change.member.host = host;
    log_.Log(change, now);
  }
  std::string TakeSaid() {
    const std::string said = said_.str();
    said_.str("");
    return said;
  }

  std::ostringstream said_;
  const std::shared_ptr<spdlog::logger> logger_ = spdlog::default_logger();
  MembershipLog log_;
};

TEST_F(MembershipLogTest, OfManyLinesAtOnceOnlyTheBeginningIsWritten) {
  for (int i = 0; i < 1500; ++i) Log(i % 2 == 0 ? MembershipChange::kJoined : MembershipChange::kExpired, {});
  const std::string said = TakeSaid();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1000);
  Log(MembershipChange::kLeft, absl::Milliseconds(50));  // Half a line's time.
  EXPECT_EQ(TakeSaid(), "");
  Log(MembershipChange::kLeft, absl::Milliseconds(150));
  EXPECT_THAT(TakeSaid(), HasSubstr("actor-1 left (501 such lines before left out)"));
  Log(MembershipChange::kLeft, absl::Seconds(1));
  EXPECT_THAT(TakeSaid(), Not(HasSubstr("left out")));
}

TEST_F(MembershipLogTest, ALongHostIsCutAndCannotBeginALine) {
  for (const auto kind : {MembershipChange::kJoined, MembershipChange::kExpired}) {
    Log(kind, {}, "a\nb" + std::string(250, 'x'));
    EXPECT_THAT(TakeSaid(), HasSubstr("a b" + std::string(61, 'x') + "..., pid 0"));
  }
}

}  // namespace
}  // namespace skein
