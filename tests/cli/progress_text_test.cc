// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_text.h"

#include <limits>

#include "base/telemetry/format_seconds.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

v1::StatusResponse Training() {
  v1::StatusResponse status;
  status.set_run_name("cheetah");
  status.set_env_id("HalfCheetah-v5");
  status.set_state(v1::RUN_STATE_TRAINING);
  status.set_uptime_seconds(61);
  v1::RunProgress& progress = *status.mutable_progress();
  progress.set_env_steps(341000);
  progress.set_target_env_steps(1000000);
  progress.set_iteration(167);
  progress.set_env_steps_per_second_10s(25300.4);
  progress.set_env_steps_per_second_60s(24800);
  progress.set_env_steps_per_second_300s(24100);
  progress.set_mean_episode_return(1234.56);
  progress.set_mean_episode_length(1000);
  progress.set_mean_policy_lag(0.5);
  progress.set_episodes(341);
  progress.set_eta_seconds(83);
  progress.set_queued_batches(3);
  for (const char* id : {"actor-1", "actor-2", "learner-1"}) {
    v1::MemberStatus& member = *status.add_members();
    member.set_member_id(id);
    member.set_role(id[0] == 'a' ? "actor" : "learner");
    member.set_host("node");
    member.set_pid(17);
    if (id[0] == 'a') member.set_learner_id("learner-1");
    if (id[0] == 'l') member.set_rank(1);
  }
  status.set_actor_moves(4);
  return status;
}

TEST(FormatSeconds, TakesTheUnitThatFits) {
  EXPECT_EQ(FormatSeconds(0.4), "0s");
  EXPECT_EQ(FormatSeconds(59.4), "59s");
  EXPECT_EQ(FormatSeconds(83), "1m23s");
  EXPECT_EQ(FormatSeconds(3600 + 120), "1h02m");
  EXPECT_EQ(FormatSeconds(-1), "-");
  EXPECT_EQ(FormatSeconds(kNan), "-");
  EXPECT_EQ(FormatSeconds(std::numeric_limits<double>::infinity()), "-");
}

TEST(FormatBar, FillsFromTheLeftAndNeverLeavesItsFrame) {
  EXPECT_EQ(FormatBar(0, 4), "[----]");
  EXPECT_EQ(FormatBar(0.5, 4), "[##--]");
  EXPECT_EQ(FormatBar(1, 4), "[####]");
  EXPECT_EQ(FormatBar(7, 4), "[####]");
  EXPECT_EQ(FormatBar(kNan, 4), "[----]");
}

TEST(FormatProgressBlock, ShowsEverythingThereIsToSee) {
  // 40 columns of bar at 34.1 %: 13 are full.
  EXPECT_THAT(FormatProgressBlock(Training(), {.actor_restarts = 1}, 200),
              ElementsAre("cheetah  HalfCheetah-v5  training  iteration 167",
                          "[#############---------------------------] 34.1%  341,000 / 1,000,000 env steps   ETA 1m23s",
                          "env-steps/s  25,300 (10 s)   24,800 (60 s)   24,100 (300 s)",
                          "mean episode return (last 100)  1234.6   length 1000.0   episodes 341",
                          "policy lag 0.5   actors 2 live (1 restarted)   queue 3"));
}

TEST(FormatProgressBlock, ShowsTheLossesOfATrainingOfSequences) {
  v1::StatusResponse status = Training();
  status.set_env_id("sequences");
  auto& losses = *status.mutable_progress()->mutable_losses();
  losses["loss"] = 0.25;
  losses["epoch_loss"] = 0.5;
  losses["epochs"] = 3;
  losses["keys_per_second"] = 514246;
  EXPECT_THAT(FormatProgressBlock(status, {}, 200),
              ElementsAre("cheetah  sequences  training  iteration 167",
                          "[#############---------------------------] 34.1%  341,000 / 1,000,000 sequences   ETA 1m23s",
                          "sequences/s  25,300 (10 s)   24,800 (60 s)   24,100 (300 s)",
                          "loss 0.2500   of the last epoch 0.5000   held out -   epochs 3   keys/s 514,246"));
}

TEST(FormatProgressBlock, NoLineIsWiderThanTheTerminal) {
  for (const std::string& line : FormatProgressBlock(Training(), {}, 30)) EXPECT_LE(line.size(), 30u) << line;
}

TEST(WrapLine, BreaksBetweenWordsAndLosesNone) {
  EXPECT_THAT(WrapLine("one two", 20), ElementsAre("one two"));
  EXPECT_THAT(WrapLine("one two  three four", 14), ElementsAre("one two", "  three four"));
  EXPECT_THAT(WrapLine("one two three", 9), ElementsAre("one two", "  three"));
  EXPECT_THAT(WrapLine("/a/long/path/x", 10), ElementsAre("/a/long/pa", "  th/x"));
}

TEST(FormatProgressBlock, ShowsTheMemory) {
  v1::StatusResponse status = Training();
  EXPECT_THAT(FormatProgressBlock(status, {}, 200), Not(Contains(HasSubstr("memory"))));
  status.mutable_progress()->set_memory("lstm");
  status.mutable_progress()->set_memory_size(48);
  EXPECT_THAT(FormatProgressBlock(status, {}, 200)[0], HasSubstr("  memory lstm 48"));
  EXPECT_THAT(FormatStatusTable(status, 200), HasSubstr("memory lstm 48"));
}

TEST(FormatProgressBlock, ShowsThePhase) {
  v1::StatusResponse status = Training();
  EXPECT_THAT(FormatProgressLine(status, {}), Not(HasSubstr("phase")));
  status.mutable_progress()->set_phase(2);
  status.mutable_progress()->set_phases(3);
  EXPECT_THAT(FormatProgressBlock(status, {}, 200), Contains(HasSubstr("queue 3   phase 2 of 3")));
  EXPECT_THAT(FormatProgressLine(status, {}), HasSubstr("ETA 1m23s  phase 2 of 3"));
  EXPECT_THAT(FormatStatusTable(status, 200), HasSubstr("phase 2 of 3"));
}

TEST(FormatProgressBlock, ShowsADashForWhatIsUnknown) {
  v1::StatusResponse status = Training();
  status.mutable_progress()->set_mean_episode_return(kNan);
  status.mutable_progress()->set_eta_seconds(-1);
  const auto lines = FormatProgressBlock(status, {}, 200);
  EXPECT_THAT(lines[1], HasSubstr("ETA -"));
  EXPECT_THAT(lines[3], HasSubstr("(last 100)  -"));
}

TEST(FormatProgressBlock, BeforeThereIsALearnerHasNoTargetAndShowsTheHint) {
  v1::StatusResponse status;
  status.set_state(v1::RUN_STATE_STARTING);
  const auto lines = FormatProgressBlock(status, {.waiting_hint = "waiting for workers"}, 200);
  EXPECT_THAT(lines[1], HasSubstr(" 0.0%  0 / 0 env steps"));
  EXPECT_EQ(lines.back(), "waiting for workers");
  EXPECT_THAT(FormatProgressBlock(Training(), {.waiting_hint = "waiting for workers"}, 200),
              Each(Not(HasSubstr("waiting"))));
}

TEST(FormatProgressBlock, ShowsOnlyTheTargetAsAHundredPercent) {
  v1::StatusResponse status = Training();
  status.mutable_progress()->set_env_steps(999999);
  EXPECT_THAT(FormatProgressBlock(status, {}, 200)[1], HasSubstr("99.9%"));
  status.mutable_progress()->set_env_steps(1000448);  // Whole iterations overshoot a little.
  EXPECT_THAT(FormatProgressBlock(status, {}, 200)[1], HasSubstr("100.0%"));
}

TEST(FormatProgressBlock, RepeatsTheFirstErrorOnOneLine) {
  v1::StatusResponse status = Training();
  status.set_last_error("disk full\non node 3");
  EXPECT_EQ(FormatProgressBlock(status, {}, 200).back(), "first error: disk full on node 3");
}

TEST(FormatProgressLine, IsOneLineWithTheSameFigures) {
  EXPECT_EQ(FormatProgressLine(Training(), {}),
            "training  341,000/1,000,000 (34.1%)  25,300/24,800/24,100 env-steps/s (10/60/300 s)  return 1234.6  "
            "lag 0.5  actors 2  queue 3  ETA 1m23s");
}

TEST(FormatStatusTable, ListsEveryMember) {
  const std::string table = FormatStatusTable(Training());
  EXPECT_THAT(table, HasSubstr("cheetah (HalfCheetah-v5), training, up 1m01s"));
  EXPECT_THAT(table, HasSubstr("actor-1"));
  EXPECT_THAT(table, HasSubstr("actor-2"));
  EXPECT_THAT(table, HasSubstr("actor-1      learner-1  node "));
  EXPECT_THAT(table, HasSubstr("learner-1    rank 1     node "));
  EXPECT_THAT(table, HasSubstr("0 expired, 4 moves of actors\n"));
}

TEST(FormatStatusTable, ShowsWarnings) {
  v1::StatusResponse status = Training();
  EXPECT_THAT(FormatStatusTable(status), Not(HasSubstr("warning")));
  status.mutable_progress()->add_warnings("the policy \x1b has stopped exploring");
  EXPECT_THAT(FormatStatusTable(status), HasSubstr("\nwarning   the policy "));
  EXPECT_THAT(FormatStatusTable(status), Not(HasSubstr("\x1b")));
}

TEST(FormatStepAccount, NamesPendingOnlyWhereThereIsSome) {
  v1::StepAccount account;
  account.set_collected(1500);
  account.set_trained(1024);
  account.set_stale(200);
  account.set_rejected(0);
  account.set_lost(276);
  EXPECT_EQ(FormatStepAccount(account), "collected 1,500 = trained 1,024 + stale 200 + rejected 0 + lost 276");
  account.set_lost(200);
  account.set_pending(76);
  EXPECT_THAT(FormatStepAccount(account), HasSubstr("lost 200 + pending 76"));
}

TEST(FormatProgressLine, NamesTheStateInWords) {
  v1::StatusResponse status;
  status.set_state(v1::RUN_STATE_WAITING_FOR_DATA);
  EXPECT_THAT(FormatProgressLine(status, {}), testing::StartsWith("waiting for data  "));
}

}  // namespace
}  // namespace skein
