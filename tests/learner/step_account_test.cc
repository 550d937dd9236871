// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/step_account.h"

#include "gtest/gtest.h"

namespace skein {
namespace {

// collected 100 = trained 60 + stale 5 + rejected 3 + lost 2 + pending 30.
v1::StepAccount Told() {
  v1::StepAccount account;
  account.set_collected(100);
  account.set_trained(60);
  account.set_stale(5);
  account.set_rejected(3);
  account.set_lost(2);
  account.set_pending(30);
  return account;
}

uint64_t Fates(const v1::StepAccount& a) { return a.trained() + a.stale() + a.rejected() + a.lost() + a.pending(); }

TEST(StepAccount, OfALostRankWhatWasPendingIsLost) {
  const v1::StepAccount settled = Settled(Told(), 0);
  EXPECT_EQ(settled.collected(), 100u);
  EXPECT_EQ(settled.trained(), 60u);
  EXPECT_EQ(settled.lost(), 32u);
  EXPECT_EQ(settled.pending(), 0u);
}

TEST(StepAccount, WhatWentIntoAnUpdateIsTrainedWhetherItWasToldOrNot) {
  // 20 of the 30 that were pending; or all 30 and 10 that came after it was told.
  const v1::StepAccount some = Settled(Told(), 20), more = Settled(Told(), 40);
  EXPECT_EQ(some.trained(), 80u);
  EXPECT_EQ(some.lost(), 12u);
  EXPECT_EQ(some.collected(), 100u);
  EXPECT_EQ(more.trained(), 100u);
  EXPECT_EQ(more.lost(), 2u);
  EXPECT_EQ(more.collected(), 110u);
  EXPECT_EQ(Fates(some), some.collected());
  EXPECT_EQ(Fates(more), more.collected());
}

TEST(StepAccount, SumsKeepTheBalance) {
  v1::StepAccount sum = Told();
  Add(Settled(Told(), 40), &sum);
  EXPECT_EQ(sum.collected(), 210u);
  EXPECT_EQ(sum.pending(), 30u);
  EXPECT_EQ(Fates(sum), sum.collected());
}

}  // namespace
}  // namespace skein
