// SPDX-License-Identifier: Apache-2.0
#include "cli/member_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/progress_text.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::StatusResponse TwoMembers() {
  v1::StatusResponse status;
  status.set_run_name("cheetah");
  status.set_state(v1::RUN_STATE_TRAINING);
  status.mutable_progress()->set_policy_version(7);
  v1::MemberStatus& actor = *status.add_members();
  actor.set_member_id("actor-1");
  actor.set_role("actor");
  actor.set_host("node1");
  actor.set_learner_id("learner-0");
  v1::MemberReport& report = *actor.mutable_report();
  report.set_policy_version(5);
  report.set_env_steps_per_second(1500);
  report.set_limit_env_steps_per_second(2000);
  report.set_cpu_ratio(0.5);
  report.set_resident_bytes(64 << 20);
  (*report.mutable_stage_seconds())["env_step"] = 6;
  (*report.mutable_stage_seconds())["wait"] = 4;
  (*report.mutable_stage_seconds())["send"] = 0.01;
  v1::MemberStatus& learner = *status.add_members();
  learner.set_member_id("learner-0");
  learner.set_role("learner");
  return status;
}

TEST(MemberState, TellsWhatMattersMost) {
  v1::MemberStatus member;
  member.set_role("actor");
  EXPECT_EQ(MemberState(member), "no learner");
  member.set_learner_id("learner-0");
  EXPECT_EQ(MemberState(member), "up");
  member.set_degraded(true);
  EXPECT_EQ(MemberState(member), "degraded");
  member.set_seconds_since_heartbeat(3);
  EXPECT_EQ(MemberState(member), "silent");
  member.set_draining(true);
  EXPECT_EQ(MemberState(member), "draining");
  v1::MemberStatus learner;
  learner.set_role("learner");
  EXPECT_EQ(MemberState(learner), "up");
  learner.mutable_report()->set_starving_seconds(1);
  EXPECT_EQ(MemberState(learner), "starving");
}

TEST(MemberLag, IsTheRunsAndNotTheAgeOfAReport) {
  v1::StatusResponse status = TwoMembers();
  status.mutable_progress()->set_mean_policy_lag(0);
  status.mutable_progress()->set_policy_version(35);
  status.mutable_members(0)->mutable_report()->set_policy_version(5);  // 30 versions a second, reported a second ago.
  EXPECT_EQ(MemberLag(status, status.members(0)), 0.0);
  EXPECT_EQ(MemberLag(status, status.members(1)), std::nullopt);
  status.mutable_progress()->set_mean_policy_lag(1.5);
  EXPECT_EQ(MemberLag(status, status.members(0)), 1.5);
  status.mutable_members(0)->mutable_report()->set_policy_version(0);
  EXPECT_EQ(MemberLag(status, status.members(0)), std::nullopt);
}

TEST(FormatStages, SharesSinceTheStartOrSinceAnEarlierReport) {
  const v1::StatusResponse status = TwoMembers();
  const v1::MemberReport& report = status.members(0).report();
  EXPECT_EQ(FormatStages(report, nullptr), "env_step 60%  wait 40%");  // Of 10 s; send has 0.1 %.
  v1::MemberReport before;
  (*before.mutable_stage_seconds())["env_step"] = 5;
  (*before.mutable_stage_seconds())["wait"] = 1;
  EXPECT_EQ(FormatStages(report, &before), "wait 75%  env_step 25%");  // 3 s and 1 s.
  EXPECT_EQ(FormatStages(report, &report), "-");
  EXPECT_EQ(FormatStages(v1::MemberReport(), nullptr), "-");
}

TEST(FormatMembers, HasARowForEachAndTheirErrors) {
  v1::StatusResponse status = TwoMembers();
  std::string text = FormatMembers(status, kUnlimitedWidth);
  EXPECT_THAT(text, HasSubstr("actor-1      learner-0  node1 "));
  EXPECT_THAT(text, HasSubstr(" 1,500    75%       5   0.0   50%    64 MiB    0.0s  "));
  EXPECT_THAT(text, HasSubstr("env_step 60%  wait 40%\n"));
  EXPECT_THAT(text, HasSubstr("learner-0    rank 0 "));
  EXPECT_THAT(text, Not(HasSubstr("errors")));
  status.mutable_members(0)->mutable_report()->set_last_error("disk full");
  EXPECT_THAT(FormatMembers(status, kUnlimitedWidth), HasSubstr("\nerrors\nactor-1: disk full\n"));
}

TEST(FormatMembers, WhatMembersSayCannotMoveTheCursor) {
  v1::StatusResponse status = TwoMembers();
  v1::MemberStatus& actor = *status.mutable_members(0);
  actor.set_host("node\x1b[2J\a");
  actor.set_metrics_address("n\x7f:1");
  actor.mutable_report()->set_last_error(
      "disk\nfull\xc2\x9b"
      "2J\a");  // U+009B is CSI.
  (*actor.mutable_report()->mutable_stage_seconds())["\x1bstage"] = 10;
  const std::string text = FormatMembers(status, kUnlimitedWidth);
  EXPECT_EQ(text.find_first_of("\x1b\a\x7f\x9b"), std::string::npos);
  EXPECT_THAT(text, HasSubstr(" node [2J "));
  EXPECT_THAT(text, HasSubstr("actor-1: disk full  2J \n"));
}

TEST(FormatMembers, ALongHostIsCutSoThatColumnsStayBelowTheirTitles) {
  v1::StatusResponse status = TwoMembers();
  status.mutable_members(0)->set_host("a-very-long-node-name.cluster.example.org");
  status.mutable_members(0)->set_pid(77);
  const std::string text = FormatMembers(status, kUnlimitedWidth);
  EXPECT_THAT(text, HasSubstr(" a-very-long-node-name.c~       77 "));  // 24 characters, then 8 for the pid.
  const std::vector<std::string> top = FormatTop(status, nullptr, 200, 100);
  EXPECT_THAT(top, testing::Contains(HasSubstr(" a-very-long-nod~ up ")));  // 16.
}

TEST(FormatTop, ShowsRunMembersAndErrors) {
  v1::StatusResponse status = TwoMembers();
  status.mutable_members(0)->mutable_report()->set_last_error("disk full\x1b[2J\non node1");
  const std::vector<std::string> lines = FormatTop(status, nullptr, 200, 100);
  EXPECT_THAT(lines[0], HasSubstr("cheetah"));
  EXPECT_THAT(lines, testing::Contains(testing::StartsWith("actor-1      learner-0  node1            up ")));
  // What members say cannot move the cursor.
  EXPECT_THAT(lines, testing::Contains("  error: disk full [2J on node1"));
}

TEST(FormatTop, ShowsTheNewestWarnings) {
  v1::StatusResponse status;
  for (int i = 1; i <= 4; ++i) status.mutable_progress()->add_warnings(absl::StrCat("no. ", i, " \x1b"));
  const std::vector<std::string> lines = FormatTop(status, nullptr, 100, 100);
  EXPECT_THAT(lines, testing::IsSupersetOf({"warning: no. 2  ", "warning: no. 3  ", "warning: no. 4  "}));
  EXPECT_THAT(lines, testing::Not(testing::Contains(HasSubstr("no. 1"))));
}

TEST(FormatTop, SharesAreThoseSinceTheStatusBefore) {
  const v1::StatusResponse before = TwoMembers();
  v1::StatusResponse status = TwoMembers();
  (*status.mutable_members(0)->mutable_report()->mutable_stage_seconds())["wait"] = 5;
  EXPECT_THAT(FormatTop(status, &before, 200, 100), testing::Contains(HasSubstr("wait 100%")));
  status.mutable_members(0)->set_generation(2);  // Another generation: since it started.
  EXPECT_THAT(FormatTop(status, &before, 200, 100), testing::Contains(HasSubstr("env_step 54%  wait 45%")));
}

// Long names, long numbers and all kinds of lines.
v1::StatusResponse FullStatus() {
  v1::StatusResponse status = TwoMembers();
  status.set_run_name("a-run-of-half-cheetah-with-a-long-name");
  status.set_env_id("MountainCarContinuous-v0");
  status.set_last_error(
      "rank 3: cannot write /shared/runs/a-run-of-half-cheetah/checkpoints/step_000123456789: disk full");
  v1::RunProgress& progress = *status.mutable_progress();
  progress.set_env_steps(1234567890);
  progress.set_target_env_steps(9876543210);
  progress.set_env_steps_per_second_10s(1234567);
  progress.set_env_steps_per_second_60s(1234567);
  progress.set_env_steps_per_second_300s(1234567);
  progress.set_mean_episode_return(-12345.6);
  progress.set_mean_episode_length(1000);
  progress.set_episodes(1234567);
  progress.set_eta_seconds(12345678);
  progress.mutable_account()->set_collected(1234567890);
  progress.mutable_account()->set_trained(1234567890);
  progress.set_checkpoint("/shared/runs/a-run-of-half-cheetah-with-a-long-name/checkpoints/step_000123456789");
  status.mutable_members(0)->set_host("a-very-long-node-name.cluster.example.org");
  status.mutable_members(0)->set_metrics_address("a-very-long-node-name.cluster.example.org:12345");
  status.mutable_members(0)->mutable_report()->set_last_error("the environment failed: cannot step: a NaN in qvel[3]");
  return status;
}

// All words, in order and without the spaces between them.
std::string Squeezed(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    for (const char c : line) {
      if (c != ' ' && c != '\n') text += c;
    }
  }
  return text;
}

const std::vector<std::string>& TitlesOfTop() {
  static const auto* const titles = new std::vector<std::string>{
      "MEMBER", "FEEDS", "HOST", "STATE", "ENV-STEPS/S", "LIMIT", "LAG", "CPU", "MEMORY", "SILENT", "TIME BY STAGE"};
  return *titles;
}

class AtWidth : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Terminals, AtWidth, testing::Values(60, 80, 100, 200));

TEST_P(AtWidth, TopHasNoLongerLineAndNamesTheColumnsThatItLeavesOut) {
  const std::vector<std::string> lines = FormatTop(FullStatus(), nullptr, GetParam(), 100);
  for (const std::string& line : lines) EXPECT_LE(line.size(), GetParam()) << line;
  const std::string all = Squeezed(lines);
  for (const std::string& title : TitlesOfTop()) EXPECT_THAT(all, HasSubstr(Squeezed({title}))) << GetParam();
  EXPECT_EQ(all.find("noroomfor") == std::string::npos, GetParam() == 200);
  // What matters most is there in every terminal: the state, the rate, the lag and where the time goes.
  EXPECT_THAT(lines,
              testing::Contains(testing::AllOf(testing::StartsWith("actor-1 "), HasSubstr(" up "), HasSubstr(" 1,500 "),
                                               HasSubstr(" 0.0  "), HasSubstr("env_step 60%"))));
}

TEST_P(AtWidth, StatusLosesNothingButColumnsThatItNames) {
  const std::string text = FormatStatusTable(FullStatus(), GetParam());
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    EXPECT_LE(line.size(), GetParam()) << line;
  }
  const std::string all = Squeezed({text});
  for (const char* title : {"PID", "GEN", "RUNNERS", "POLICY", "METRICS"}) EXPECT_THAT(all, HasSubstr(title));
  const v1::StatusResponse status = FullStatus();
  for (const std::string& whole :
       {status.run_name(), status.env_id(), status.last_error(), status.progress().checkpoint(),
        status.members(0).report().last_error(), FormatStepAccount(status.progress().account()),
        std::string("1,234,567 (10 s)   1,234,567 (60 s)   1,234,567 (300 s)"),
        std::string("1,234,567,890 / 9,876,543,210 env steps"), std::string("episodes 1,234,567")}) {
    EXPECT_THAT(all, HasSubstr(Squeezed({whole})));
  }
}

TEST(FormatTop, FitsTheTerminal) {
  v1::StatusResponse status = TwoMembers();
  for (int i = 0; i < 50; ++i) status.add_members()->set_member_id("actor-" + std::to_string(i + 2));
  const std::vector<std::string> lines = FormatTop(status, nullptr, 60, 20);
  EXPECT_EQ(lines.size(), 20u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 60u) << line;
  EXPECT_THAT(lines.back(), HasSubstr("more lines"));
}

}  // namespace
}  // namespace skein
