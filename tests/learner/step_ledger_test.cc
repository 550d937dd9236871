// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/step_ledger.h"

#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/learner/connections.h"

namespace skein {
namespace {

using Fate = StepLedger::Fate;

constexpr absl::Duration kGrace = absl::Seconds(60);

v1::StepAccount Account(uint64_t collected, uint64_t trained, uint64_t stale, uint64_t rejected, uint64_t lost,
                        uint64_t pending) {
  v1::StepAccount account;
  account.set_collected(collected);
  account.set_trained(trained);
  account.set_stale(stale);
  account.set_rejected(rejected);
  account.set_lost(lost);
  account.set_pending(pending);
  return account;
}

// The ledger says exactly this, and it adds up.
void ExpectAccount(const StepLedger& ledger, const v1::StepAccount& want) {
  EXPECT_EQ(ledger.account().ShortDebugString(), want.ShortDebugString());
  EXPECT_EQ(ledger.imbalance(), 0);
  const v1::StepAccount got = ledger.account();
  EXPECT_EQ(got.collected(), got.trained() + got.stale() + got.rejected() + got.lost() + got.pending());
}

TEST(StepLedger, BeginsEmpty) {
  StepLedger ledger;
  ExpectAccount(ledger, Account(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(ledger.last_sequence(kAda), 0u);
  EXPECT_FALSE(ledger.closed(kAda));
}

TEST(StepLedger, EachFateHasItsColumn) {
  StepLedger ledger;
  ASSERT_TRUE(ledger.Open(kAda));
  ledger.Arrive(kAda, 1, 10, 10, Fate::kAdmitted);
  ExpectAccount(ledger, Account(10, 0, 0, 0, 0, 10));
  ledger.Arrive(kAda, 2, 10, 20, Fate::kStale);
  ledger.Arrive(kAda, 3, 10, 30, Fate::kRejected);
  ExpectAccount(ledger, Account(30, 0, 10, 10, 0, 10));
  ledger.Trained(10);
  ExpectAccount(ledger, Account(30, 10, 10, 10, 0, 0));
  EXPECT_EQ(ledger.last_sequence(kAda), 3u);
}

TEST(StepLedger, WhatAnActorHasFinishedAndNotDeliveredIsPending) {
  StepLedger ledger;
  ledger.Open(kAda);
  ledger.Grant(kAda, 30);
  ledger.Arrive(kAda, 1, 10, 30, Fate::kAdmitted);  // 10 waiting for training, 20 on the way.
  ExpectAccount(ledger, Account(30, 0, 0, 0, 0, 30));
  ledger.Trained(10);
  ExpectAccount(ledger, Account(30, 10, 0, 0, 0, 20));
  ledger.Arrive(kAda, 2, 20, 30, Fate::kAdmitted);
  ExpectAccount(ledger, Account(30, 10, 0, 0, 0, 20));
}

TEST(StepLedger, RaisesAClaimBelowWhatArrived) {
  StepLedger ledger;
  ledger.Open(kAda);
  ledger.Grant(kAda, 50);
  ledger.Arrive(kAda, 1, 10, 3, Fate::kAdmitted);
  ExpectAccount(ledger, Account(10, 0, 0, 0, 0, 10));
  ledger.Arrive(kAda, 2, 10, 50, Fate::kAdmitted);
  ledger.Arrive(kAda, 3, 10, 40, Fate::kAdmitted);  // A total never falls.
  ExpectAccount(ledger, Account(50, 0, 0, 0, 0, 50));
}

TEST(StepLedger, ADepartedActorsMissingStepsAreLost) {
  StepLedger ledger;
  ledger.Open(kAda);
  ledger.Grant(kAda, 100);
  ledger.Arrive(kAda, 1, 10, 20, Fate::kAdmitted);
  ledger.Depart(kAda, 25);  // 10 arrived.
  ExpectAccount(ledger, Account(25, 0, 0, 0, 15, 10));
  EXPECT_TRUE(ledger.closed(kAda));
  ledger.Depart(kAda, 100);  // Its books are closed.
  ExpectAccount(ledger, Account(25, 0, 0, 0, 15, 10));
}

TEST(StepLedger, NoMoreIsCountedThanTicketsWereGrantedFor) {
  constexpr uint64_t kAll = ~uint64_t{0};
  StepLedger ledger;
  ledger.Open(kAda);
  ledger.Grant(kAda, 10);
  ledger.Grant(kAda, 10);
  ledger.Grant(kBob, 10);                                           // Nobody here.
  EXPECT_EQ(ledger.Arrive(kAda, 1, 10, 50, Fate::kAdmitted), 30u);  // 10 arrived, and 10 may be on the way.
  ExpectAccount(ledger, Account(20, 0, 0, 0, 0, 20));
  // What arrives without a ticket is there all the same.
  EXPECT_EQ(ledger.Arrive(kAda, 2, 10, 20, Fate::kStale), 0u);
  ExpectAccount(ledger, Account(20, 0, 10, 0, 0, 10));
  EXPECT_EQ(ledger.Depart(kAda, kAll), kAll - 30);
  ExpectAccount(ledger, Account(30, 0, 10, 0, 10, 10));
  EXPECT_EQ(ledger.Depart(kBob, kAll), 0u);
  ExpectAccount(ledger, Account(30, 0, 10, 0, 10, 10));
}

TEST(StepLedger, AClosedConnectionCannotBeOpenedButTheNextCan) {
  StepLedger ledger;
  ledger.Open(kAda);
  ledger.Depart(kAda, 0);
  EXPECT_FALSE(ledger.Open(kAda));
  EXPECT_TRUE(ledger.Open({"ada", 2}));
  EXPECT_EQ(ledger.last_sequence({"ada", 2}), 0u);
}

TEST(StepLedger, ReopeningKeepsTheBooksAndTheSequence) {
  StepLedger ledger;
  ledger.Open(kAda);
  ledger.Grant(kAda, 20);
  ledger.Arrive(kAda, 1, 10, 20, Fate::kAdmitted);
  ledger.Disconnect(kAda, absl::Seconds(5));
  ASSERT_TRUE(ledger.Open(kAda));
  EXPECT_EQ(ledger.last_sequence(kAda), 1u);
  ledger.CloseSilent(absl::Seconds(1000), kGrace);
  EXPECT_FALSE(ledger.closed(kAda));
  ledger.Arrive(kAda, 2, 10, 20, Fate::kAdmitted);
  ExpectAccount(ledger, Account(20, 0, 0, 0, 0, 20));
}

TEST(StepLedger, ASilentConnectionIsClosedAfterTheGraceAndNotBefore) {
  StepLedger ledger;
  ledger.Open(kAda);
  ledger.Grant(kAda, 30);
  ledger.Open(kBob);
  ledger.Grant(kBob, 30);
  ledger.Arrive(kAda, 1, 10, 30, Fate::kAdmitted);
  ledger.Arrive(kBob, 1, 10, 30, Fate::kAdmitted);
  ledger.Disconnect(kAda, absl::Seconds(100));
  ledger.CloseSilent(absl::Seconds(159), kGrace);
  ExpectAccount(ledger, Account(60, 0, 0, 0, 0, 60));
  ledger.CloseSilent(absl::Seconds(160), kGrace);
  ExpectAccount(ledger, Account(60, 0, 0, 0, 20, 40));
  EXPECT_FALSE(ledger.Open(kAda));
  EXPECT_TRUE(ledger.Open(kBob));
}

TEST(StepLedger, ASilentConnectionThatNothingCameFromIsForgotten) {
  StepLedger ledger;
  ledger.Open(kAda);
  ledger.Disconnect(kAda, absl::Seconds(100));
  ledger.CloseSilent(absl::Seconds(159), kGrace);
  EXPECT_TRUE(ledger.Knows(kAda));
  ledger.CloseSilent(absl::Seconds(160), kGrace);
  EXPECT_FALSE(ledger.Knows(kAda));
  EXPECT_TRUE(ledger.Open(kAda));
  ExpectAccount(ledger, Account(0, 0, 0, 0, 0, 0));
}

TEST(StepLedger, ForgetsTheOldestOfTooManyClosedConnections) {
  constexpr uint64_t kMany = StepLedger::kMostClosed + 10;
  StepLedger ledger;
  for (uint64_t generation = 1; generation <= kMany; ++generation) {
    const ConnectionId key{"ada", generation};
    ASSERT_TRUE(ledger.Open(key));
    ledger.Grant(key, 20);
    ledger.Arrive(key, 1, 10, 20, Fate::kStale);
    ledger.Depart(key, 20);
  }
  EXPECT_EQ(ledger.connections(), StepLedger::kMostClosed);
  EXPECT_FALSE(ledger.Open({"ada", kMany}));
  ExpectAccount(ledger, Account(20 * kMany, 0, 10 * kMany, 0, 10 * kMany, 0));
  // One that is forgotten goes on as one of an earlier process would.
  EXPECT_TRUE(ledger.Open({"ada", 1}));
  ledger.Arrive({"ada", 1}, 3, 10, 40, Fate::kStale);
  ExpectAccount(ledger, Account(20 * kMany + 10, 0, 10 * kMany + 10, 0, 10 * kMany, 0));
}

TEST(StepLedger, HasRoomForSoManyConnections) {
  StepLedger ledger;
  for (uint64_t generation = 1; generation <= StepLedger::kMostConnections; ++generation) {
    ASSERT_TRUE(ledger.HasRoomFor({"ada", generation}));
    ledger.Open({"ada", generation});
  }
  EXPECT_FALSE(ledger.HasRoomFor(kBob));
  EXPECT_TRUE(ledger.HasRoomFor(kAda));  // Who is here may come again.
  ledger.Disconnect(kAda, absl::ZeroDuration());
  ledger.CloseSilent(kGrace, kGrace);
  EXPECT_TRUE(ledger.HasRoomFor(kBob));
}

TEST(StepLedger, WithAnotherCertificateItIsAnotherConnection) {
  StepLedger ledger;
  const ConnectionId impostor{"ada", 1, "another's"};
  ledger.Open(kAda);
  ledger.Arrive(kAda, 1, 10, 10, Fate::kAdmitted);
  ledger.Open(impostor);
  EXPECT_EQ(ledger.last_sequence(impostor), 0u);
  ledger.Depart(impostor, 0);
  EXPECT_FALSE(ledger.closed(kAda));
  EXPECT_FALSE(impostor == kAda);
}

TEST(StepLedger, PendingOfAnEarlierProcessIsLost) {
  StepLedger ledger(Account(100, 60, 10, 5, 5, 20));
  ExpectAccount(ledger, Account(100, 60, 10, 5, 25, 0));
}

TEST(StepLedger, AConnectionThatBeganUnderAnEarlierProcessIsCountedFromItsFirstFragmentHere) {
  // The actor had finished 70 steps when it made fragment 8 of 10 steps; 60 of them are in the earlier account.
  StepLedger ledger(Account(60, 60, 0, 0, 0, 0));
  ledger.Open(kAda);
  ledger.Grant(kAda, 30);
  ledger.Arrive(kAda, 8, 10, 70, Fate::kAdmitted);
  ExpectAccount(ledger, Account(70, 60, 0, 0, 0, 10));
  ledger.Arrive(kAda, 9, 10, 90, Fate::kAdmitted);
  ExpectAccount(ledger, Account(90, 60, 0, 0, 0, 30));
}

TEST(StepLedger, DepartureOfAConnectionThatWasNeverOpenedHereChangesNothing) {
  StepLedger ledger(Account(60, 60, 0, 0, 0, 0));
  ledger.Depart(kAda, 60);
  ExpectAccount(ledger, Account(60, 60, 0, 0, 0, 0));
}

TEST(StepLedger, DroppedAdmittedStepsAreLost) {
  StepLedger ledger;
  ledger.Open(kAda);
  ledger.Grant(kAda, 25);
  ledger.Arrive(kAda, 1, 10, 25, Fate::kAdmitted);
  ledger.DropAdmitted();
  ExpectAccount(ledger, Account(25, 0, 0, 0, 10, 15));
}

TEST(StepLedger, ClosingAllLeavesNothingPending) {
  StepLedger ledger;
  ledger.Open(kAda);
  ledger.Grant(kAda, 25);
  ledger.Open(kBob);
  ledger.Arrive(kAda, 1, 10, 25, Fate::kAdmitted);
  ledger.Arrive(kBob, 1, 5, 5, Fate::kAdmitted);
  ledger.CloseAll();
  ExpectAccount(ledger, Account(30, 0, 0, 0, 30, 0));
  EXPECT_FALSE(ledger.Open(kBob));
}

// Actors that finish fragments, deliver them, break off, come back, leave and die, in random order; after every event
// the sum holds, and the columns are what a count of the events themselves says.
TEST(StepLedger, AddsUpAfterEveryEventOfARandomWalk) {
  struct ActorModel {
    ConnectionId key;
    std::vector<uint64_t> unsent;  // Steps of finished fragments.
    uint64_t sequence = 0, collected = 0;
    bool open = false;
  };
  std::mt19937 random(7);
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  for (int walk = 0; walk < 20; ++walk) {
    StepLedger ledger;
    std::vector<ActorModel> actors(4);
    uint64_t generation = 0, admitted = 0, trained = 0, stale = 0, rejected = 0, arrived = 0;
    absl::Duration now;
    for (size_t i = 0; i < actors.size(); ++i) actors[i].key = {"actor-" + std::to_string(i), ++generation};
    for (int event = 0; event < 400; ++event) {
      now += absl::Seconds(below(10));
      ActorModel& actor = actors[below(4)];
      switch (below(8)) {
        case 0:
          actor.open = ledger.Open(actor.key);
          EXPECT_EQ(actor.open, !ledger.closed(actor.key));
          if (!actor.open) actor = {{actor.key.actor_id, ++generation}, {}, 0, 0, false};
          break;
        case 1:
          actor.unsent.push_back(1 + below(50));
          actor.collected += actor.unsent.back();
          ledger.Grant(actor.key, actor.unsent.back());
          break;
        case 2:
        case 3:
        case 4: {
          if (!actor.open || actor.unsent.empty()) break;
          const uint64_t steps = actor.unsent.front();
          actor.unsent.erase(actor.unsent.begin());
          const auto fate = static_cast<Fate>(below(3));
          ledger.Arrive(actor.key, ++actor.sequence, steps, actor.collected, fate);
          arrived += steps;
          (fate == Fate::kAdmitted ? admitted : fate == Fate::kStale ? stale : rejected) += steps;
          break;
        }
        case 5:
          if (actor.open) ledger.Disconnect(actor.key, now);
          actor.open = false;
          break;
        case 6:
          if (!actor.open || below(4) != 0) break;
          ledger.Depart(actor.key, actor.collected);
          actor = {{actor.key.actor_id, ++generation}, {}, 0, 0, false};
          break;
        case 7:
          ledger.CloseSilent(now, kGrace);
          if (below(3) != 0) break;
          ledger.Trained(admitted);
          trained += admitted;
          admitted = 0;
          break;
      }
      const v1::StepAccount account = ledger.account();
      ASSERT_EQ(account.collected(),
                account.trained() + account.stale() + account.rejected() + account.lost() + account.pending())
          << "walk " << walk << " event " << event;
      ASSERT_EQ(ledger.imbalance(), 0);
      ASSERT_EQ(account.trained(), trained);
      ASSERT_EQ(account.stale(), stale);
      ASSERT_EQ(account.rejected(), rejected);
      ASSERT_GE(account.pending(), admitted);
      ASSERT_GE(account.collected(), arrived);
      ASSERT_LT(account.pending(), uint64_t{1} << 40);  // Nothing went below zero.
    }
    ledger.CloseAll();
    EXPECT_EQ(ledger.account().pending(), 0u);
    EXPECT_EQ(ledger.account().lost(), ledger.account().collected() - trained - stale - rejected);
  }
}

// Two ledgers, one actor that moves between them: together they have every step once.
TEST(StepLedger, SeveralLedgersShareAnActor) {
  const ConnectionId key{"ada", 1};
  StepLedger first({}, true), second({}, true);
  first.Open(key);
  first.Arrive(key, 1, 10, 10, StepLedger::Fate::kAdmitted);
  first.Arrive(key, 2, 10, 20, StepLedger::Fate::kAdmitted);
  first.Disconnect(key, absl::ZeroDuration());
  second.Open(key);
  second.Arrive(key, 3, 10, 30, StepLedger::Fate::kStale);
  second.Arrive(key, 4, 10, 40, StepLedger::Fate::kAdmitted);
  second.Disconnect(key, absl::ZeroDuration());
  first.Open(key);
  first.Grant(key, 30);
  first.Arrive(key, 5, 10, 50, StepLedger::Fate::kAdmitted);
  EXPECT_EQ(first.account().collected(), 30u);
  EXPECT_EQ(first.account().pending(), 30u);
  EXPECT_EQ(second.account().collected(), 20u);
  EXPECT_EQ(second.account().stale(), 10u);
  // It finished 70 by now, of which two fragments did not make it to where it says goodbye.
  first.Depart(key, 70);
  EXPECT_EQ(first.account().lost(), 20u);
  second.CloseSilent(absl::Hours(1), absl::Minutes(1));
  EXPECT_EQ(second.account().lost(), 0u);
  EXPECT_EQ(first.imbalance(), 0);
  EXPECT_EQ(second.imbalance(), 0);
}

TEST(StepLedger, AGoodbyeWhereNothingCameBeforeSaysNothing) {
  const ConnectionId key{"ada", 1};
  StepLedger ledger({}, true);
  ledger.Open(key);
  ledger.Depart(key, 70);  // All of it came to another learner.
  EXPECT_EQ(ledger.account().collected(), 0u);
  EXPECT_EQ(ledger.account().lost(), 0u);
  EXPECT_TRUE(ledger.closed(key));
}

TEST(StepLedger, WhatAnIterationLeavesOutIsStale) {
  const ConnectionId key{"ada", 1};
  StepLedger ledger;
  ledger.Open(key);
  ledger.Arrive(key, 1, 10, 10, StepLedger::Fate::kAdmitted);
  ledger.Arrive(key, 2, 10, 20, StepLedger::Fate::kAdmitted);
  ledger.DropStale(10);
  ledger.Trained(10);
  EXPECT_EQ(ledger.account().stale(), 10u);
  EXPECT_EQ(ledger.account().trained(), 10u);
  EXPECT_EQ(ledger.account().pending(), 0u);
  EXPECT_EQ(ledger.imbalance(), 0);
}

}  // namespace
}  // namespace skein
