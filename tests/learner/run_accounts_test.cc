// SPDX-License-Identifier: Apache-2.0
#include "learner/run/run_accounts.h"

#include "gtest/gtest.h"
#include "learner/run/rank_accounts.h"
#include "prometheus/registry.h"
#include "tests/learner/collector_fixture.h"
#include "tests/learner/sample_metrics.h"

namespace skein {
namespace {

v1::StepAccount Account(uint64_t trained, uint64_t pending) {
  v1::StepAccount account;
  account.set_collected(trained + pending);
  account.set_trained(trained);
  account.set_pending(pending);
  return account;
}

void ExpectAccount(const v1::StepAccount& account, uint64_t collected, uint64_t trained, uint64_t lost,
                   uint64_t pending) {
  EXPECT_EQ(account.collected(), collected);
  EXPECT_EQ(account.trained(), trained);
  EXPECT_EQ(account.lost(), lost);
  EXPECT_EQ(account.pending(), pending);
}

// A group of three: this process is 11, at place 0. The others have told 100 + 20 and 200 + 40.
class RankAccountsTest : public testing::Test {
 protected:
  RankAccountsTest() {
    accounts_.SetGroup({11, 22, 33});
    accounts_.Tell({Account(50, 10), Account(100, 20), Account(200, 40)});
  }
  RankAccounts accounts_;
};

TEST_F(RankAccountsTest, OfThoseThatAreGoneWhatWasPendingIsLost) {
  ExpectAccount(accounts_.Settle(11, {22, 33}, {}), 0, 0, 0, 0);
  ExpectAccount(accounts_.Settle(11, {22}, {}), 240, 200, 40, 0);
  // With what was lost before; this rank counts its own steps itself.
  ExpectAccount(accounts_.Settle(11, {}, Account(7, 0)), 120 + 240 + 7, 100 + 200 + 7, 20 + 40, 0);
}

TEST_F(RankAccountsTest, StepsOfAnUpdateThatEndedAreTrainedThoughItsRankDidNotLiveToSaySo) {
  accounts_.BeginUpdate({8, 16, 48});
  accounts_.EndUpdate();
  // 33 had told 40 pending; 48 were in the update.
  ExpectAccount(accounts_.Settle(11, {22}, {}), 248, 248, 0, 0);
  accounts_.Tell({Account(58, 0), Account(116, 0), Account(248, 0)});  // Told now: counted once.
  ExpectAccount(accounts_.Settle(11, {22}, {}), 248, 248, 0, 0);
}

TEST_F(RankAccountsTest, StepsOfAnUpdateThatBrokeOffAreLost) {
  accounts_.BeginUpdate({8, 16, 40});
  EXPECT_TRUE(accounts_.in_update());
  ExpectAccount(accounts_.Settle(11, {22}, {}), 240, 200, 40, 0);
  accounts_.DropUpdate();  // It is in no rank's parameters.
  accounts_.EndUpdate();
  EXPECT_FALSE(accounts_.in_update());
  ExpectAccount(accounts_.Settle(11, {22}, {}), 240, 200, 40, 0);
}

TEST_F(RankAccountsTest, ARankThatNeverToldHasNoAccount) {
  accounts_.SetGroup({11, 22, 33, 44});
  ExpectAccount(accounts_.Settle(11, {22, 33}, {}), 0, 0, 0, 0);
}

TEST(RunAccounts, WithoutACollectorCountWhatTheyAreTold) {
  prometheus::Registry registry;
  LearnerMetrics metrics(&registry);
  RunAccounts accounts(&metrics);
  accounts.Begin(Account(100, 0));
  accounts.Count(/*collected=*/30, /*trained=*/20);
  ExpectAccount(accounts.own(), 130, 120, 0, 10);
  EXPECT_EQ(MetricValue(registry, "skein_learner_env_steps_total", {{"fate", "trained"}}), 120);
  EXPECT_EQ(MetricValue(registry, "skein_learner_pending_env_steps"), 10);
  accounts.SettleOwn();
  ExpectAccount(accounts.own(), 130, 120, 10, 0);
}

TEST(RunAccounts, TotalIsThisRanksTheOthersAndTheLost) {
  prometheus::Registry registry;
  LearnerMetrics metrics(&registry);
  RunAccounts accounts(&metrics);
  accounts.Begin(Account(100, 5));
  accounts.SetOthers(Account(200, 7));
  v1::StepAccount lost;
  lost.set_collected(3);
  lost.set_lost(3);
  accounts.SetLost(lost);
  ExpectAccount(accounts.total(), 315, 300, 3, 12);
  ExpectAccount(accounts.lost(), 3, 0, 3, 0);
  ExpectAccount(accounts.own(), 105, 100, 0, 5);
}

class RunAccountsTest : public CollectorTest {};

TEST_F(RunAccountsTest, FollowTheCollector) {
  RunAccounts accounts(&metrics_);
  accounts.Begin(Account(1000, 0));
  accounts.Follow(&collector_);
  ExpectAccount(accounts.own(), 0, 0, 0, 0);
  collector_.OpenIteration(1);
  ServeGroup(0, 0);
  ExpectAccount(accounts.own(), kFragmentSteps, 0, 0, kFragmentSteps);
  ExpectAccount(accounts.total(), kFragmentSteps, 0, 0, kFragmentSteps);
}

}  // namespace
}  // namespace skein
