// SPDX-License-Identifier: Apache-2.0
#include "coordinator/status_page.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(StatusPage, ShowsRunProgressAndMembers) {
  v1::StatusResponse status;
  status.set_run_name("cheetah");
  status.set_state(v1::RUN_STATE_TRAINING);
  status.mutable_progress()->set_env_steps(250'000);
  status.mutable_progress()->set_target_env_steps(1'000'000);
  status.mutable_progress()->set_eta_seconds(61.7);
  status.mutable_progress()->set_mean_episode_return(std::numeric_limits<double>::quiet_NaN());
  v1::MemberStatus* member = status.add_members();
  member->set_member_id("actor-1");
  member->set_metrics_address("node1:9100");
  member->set_learner_id("learner-1");
  member = status.add_members();
  member->set_member_id("learner-1");
  member->set_role("learner");
  member->set_rank(1);
  status.set_actor_moves(7);
  const std::string page = StatusPage(status);
  EXPECT_THAT(page, HasSubstr("<h1>cheetah</h1>"));
  EXPECT_THAT(page, HasSubstr("training"));
  EXPECT_THAT(page, HasSubstr("<progress max=\"100\" value=\"25.00\">"));
  EXPECT_THAT(page, HasSubstr("250,000 of 1,000,000"));
  EXPECT_THAT(page, HasSubstr("1m1s"));
  EXPECT_THAT(page, HasSubstr("<a href=\"http://node1:9100/metrics\">actor-1</a>"));
  EXPECT_THAT(page, HasSubstr("actor-1</a></td><td>learner-1</td>"));
  EXPECT_THAT(page, HasSubstr("<tr><td>learner-1</td><td>rank 1</td>"));
  EXPECT_THAT(page, HasSubstr("<th>Actors moved</th><td>7</td>"));
  EXPECT_THAT(page, HasSubstr("http-equiv=\"refresh\""));
  EXPECT_THAT(page, HasSubstr("width=device-width"));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
}

TEST(StatusPage, EscapesWhateverMembersSay) {
  const std::string evil = "<script>\"&'</script>";
  v1::StatusResponse status;
  status.set_run_name(evil);
  status.set_run_id(evil);
  status.set_env_id(evil);
  status.set_run_directory(evil);
  status.set_last_error(evil);
  status.mutable_progress()->set_checkpoint(evil);
  v1::MemberStatus* member = status.add_members();
  member->set_member_id(evil);
  member->set_host(evil);
  member->set_learner_id(evil);
  member->set_metrics_address(evil);
  member->mutable_report()->set_last_error(evil);
  const std::string page = StatusPage(status);
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, Not(HasSubstr("\"&'")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;&quot;&amp;&#39;&lt;/script&gt;"));
}

TEST(StatusPage, IsWholeForAnEmptyStatus) {
  const std::string page = StatusPage(v1::StatusResponse());
  EXPECT_THAT(page, HasSubstr("value=\"0.00\""));
  EXPECT_THAT(page, HasSubstr("</html>"));
}

}  // namespace
}  // namespace skein
