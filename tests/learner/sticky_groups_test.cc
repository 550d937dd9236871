// SPDX-License-Identifier: Apache-2.0
// Env groups whose environments cannot be moved: they stay with the connection that was granted them first.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/collect/ticket_timing.h"
#include "tests/learner/ticket_office_grants.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

// Two groups of two environments.
TicketOffice StickyOffice() { return TicketOffice({.share_envs = 4, .envs_per_group = 2, .relocatable = false}); }

void Serve(TicketOffice* office, const ConnectionId& actor, uint64_t ticket, absl::Duration now = kNow) {
  const auto piece = office->Accept(actor, ticket, now);
  ASSERT_TRUE(piece) << ticket;
  office->Commit(piece->group, {});
}

// Ada and bob have one group each, and have served its first ticket (1 and 2).
TicketOffice OneGroupEach(bool async) {
  TicketOffice office = StickyOffice();
  office.AddActor(kAda, 2, 1);
  office.AddActor(kBob, 2, 1);
  async ? (void)office.OpenTickets(2) : office.OpenIteration(1);
  EXPECT_THAT(CountByActor(office.Grant(kNow)), ElementsAre(Pair("ada", 1), Pair("bob", 1)));
  Serve(&office, kAda, 1, absl::Seconds(1));
  Serve(&office, kBob, 2, absl::Seconds(1));
  if (!async) office.EndIteration();
  async ? (void)office.OpenTickets(2) : office.OpenIteration(2);
  return office;
}

TEST(StickyGroups, StayWithTheActorThatHadThemFirst) {
  for (const bool async : {false, true}) {
    TicketOffice office = OneGroupEach(async);
    for (const auto& [actor, ticket] : office.Grant(absl::Seconds(1))) {
      EXPECT_EQ(actor, ticket.first_env() == 0 ? kAda : kBob);
      EXPECT_FALSE(ticket.has_env_state());
      EXPECT_EQ(ticket.episodes_since(), ticket.first_env() == 0 ? 1u : 2u);
      EXPECT_GT(ticket.id(), ticket.episodes_since());
    }
    EXPECT_EQ(office.groups().restarted_episodes(), 0u);
    EXPECT_FALSE(office.groups().State());
  }
}

TEST(StickyGroups, NoOtherActorGetsALateTicket) {
  for (const bool async : {false, true}) {
    TicketOffice office = OneGroupEach(async);
    ASSERT_THAT(office.Grant(absl::Seconds(1)), SizeIs(2));
    Serve(&office, kAda, 3, absl::Seconds(2));
    for (int seconds = 2; seconds < 200; ++seconds) EXPECT_THAT(office.Grant(absl::Seconds(seconds)), IsEmpty());
    EXPECT_THAT(office.Holders(), ElementsAre(Pair(kBob, 1u)));
    Serve(&office, kBob, 4, absl::Seconds(200));
    // Nor is bob passed over, slow as he is.
    async ? (void)office.OpenTickets(2) : (office.EndIteration(), office.OpenIteration(3));
    EXPECT_THAT(CountByActor(office.Grant(absl::Seconds(200))), ElementsAre(Pair("ada", 1), Pair("bob", 1)));
  }
}

TEST(StickyGroups, NobodyIsHelpedWhileNothingIsKnownOfAnySpeed) {
  TicketOffice office = StickyOffice();
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(1);
  ASSERT_THAT(office.Grant(kNow), SizeIs(2));
  office.AddActor(kBob, 2, 2);
  for (int seconds = 1; seconds < 200; ++seconds) EXPECT_THAT(office.Grant(absl::Seconds(seconds)), IsEmpty());
}

TEST(StickyGroups, BeginNewEpisodesWithAnotherActorWhenTheirsIsGone) {
  for (const bool async : {false, true}) {
    TicketOffice office = OneGroupEach(async);
    ASSERT_THAT(office.Grant(absl::Seconds(1)), SizeIs(2));  // 3 and 4.
    office.RemoveActor(kAda);
    Serve(&office, kBob, 4, absl::Seconds(1));
    EXPECT_THAT(office.Grant(absl::Seconds(1)), IsEmpty());  // Bob has one already: ada may come back.
    const Grants grants = office.Grant(absl::Seconds(1) + kUnowned);
    ASSERT_THAT(CountByActor(grants), ElementsAre(Pair("bob", 1)));
    const v1::Ticket& ticket = grants[0].second;
    EXPECT_EQ(ticket.first_env(), 0u);
    EXPECT_EQ(ticket.episodes_since(), ticket.id());
    EXPECT_EQ(ticket.first_episode(), 1u << 20);  // Others than ada's.
    EXPECT_EQ(office.groups().restarted_episodes(), 2u);
    // What ada still brings is of other episodes.
    EXPECT_FALSE(office.Accept(kAda, 3, absl::Seconds(7)));
    Serve(&office, kBob, ticket.id(), absl::Seconds(7));
    EXPECT_TRUE(office.groups().complete());
  }
}

// Of eight groups the first of two actors had all before the second one came, which then had nothing to do.
TEST(StickyGroups, AnActorTakesNoMoreGroupsThanItHasRunnersWhileAnotherMayStillCome) {
  TicketOffice office({.share_envs = 16, .envs_per_group = 2, .relocatable = false});
  office.AddActor(kAda, 4, 2);
  office.OpenIteration(1);
  const Grants of_ada = office.Grant(kNow);
  ASSERT_THAT(of_ada, SizeIs(2));
  for (const auto& [actor, ticket] : of_ada) Serve(&office, kAda, ticket.id(), absl::Seconds(1));
  EXPECT_THAT(office.Grant(absl::Seconds(1)), IsEmpty());
  office.AddActor(kBob, 4, 2);
  EXPECT_THAT(CountByActor(office.Grant(absl::Seconds(2))), ElementsAre(Pair("bob", 2)));
  EXPECT_THAT(office.Grant(kUnowned - absl::Milliseconds(1)), IsEmpty());
  // Nobody else came: any actor that is free takes the rest.
  EXPECT_THAT(CountByActor(office.Grant(kUnowned)), ElementsAre(Pair("ada", 2)));
  EXPECT_EQ(office.groups().Owned().at(kAda), 4u);
  EXPECT_EQ(office.groups().Owned().at(kBob), 2u);
}

TEST(StickyGroups, AnActorThatConnectsAgainBeginsNewEpisodes) {
  TicketOffice office = OneGroupEach(true);
  office.AddActor(kAda, 2, 1);
  EXPECT_EQ(office.groups().restarted_episodes(), 0u);  // Counted when the new ones begin.
  const Grants grants = office.Grant(absl::Seconds(1));
  ASSERT_THAT(grants, SizeIs(2));
  for (const auto& [actor, ticket] : grants) EXPECT_EQ(ticket.episodes_since() == ticket.id(), ticket.first_env() == 0);
  EXPECT_EQ(office.groups().restarted_episodes(), 2u);
}

TEST(StickyGroups, BeginNewEpisodesAfterAnUnusableAnswer) {
  TicketOffice office = OneGroupEach(false);
  ASSERT_THAT(office.Grant(absl::Seconds(1)), SizeIs(2));  // 3 and 4.
  office.Refuse(kAda, 3);
  Grants grants = office.Grant(absl::Seconds(1));
  ASSERT_THAT(CountByActor(grants), ElementsAre(Pair("ada", 1)));
  EXPECT_EQ(grants[0].second.episodes_since(), grants[0].second.id());
  // The values turn out to be unusable while they are put in place.
  const auto piece = office.Accept(kAda, grants[0].second.id(), absl::Seconds(2));
  ASSERT_TRUE(piece);
  office.Reopen(piece->group);
  grants = office.Grant(absl::Seconds(2));
  ASSERT_THAT(CountByActor(grants), ElementsAre(Pair("ada", 1)));
  EXPECT_EQ(grants[0].second.episodes_since(), grants[0].second.id());
  EXPECT_EQ(office.groups().restarted_episodes(), 4u);
}

TEST(StickyGroups, AnActorThatIsLostWhileItsAnswerIsPutInPlaceBeginsNewEpisodes) {
  TicketOffice office = OneGroupEach(false);
  office.OpenIteration(3);
  ASSERT_THAT(office.Grant(absl::Seconds(1)), SizeIs(2));
  const auto piece = office.Accept(kAda, 3, absl::Seconds(2));
  ASSERT_TRUE(piece);
  office.RemoveActor(kAda);
  TicketState memory;
  memory.policy_state.emplace();
  office.Commit(piece->group, memory);
  Serve(&office, kBob, 4, absl::Seconds(2));
  const Grants own = office.Grant(absl::Seconds(2));
  ASSERT_THAT(CountByActor(own), ElementsAre(Pair("bob", 1)));
  EXPECT_EQ(own[0].second.first_env(), 2u);
  Serve(&office, kBob, own[0].second.id(), absl::Seconds(3));
  bool found = false;
  for (const auto& [actor, ticket] : office.Grant(absl::Seconds(2) + kUnowned)) {
    if (ticket.first_env() != 0) continue;
    found = true;
    EXPECT_EQ(actor, kBob);
    EXPECT_EQ(ticket.episodes_since(), ticket.id());
    EXPECT_FALSE(ticket.has_policy_state());
  }
  EXPECT_TRUE(found);
}

TEST(StickyGroups, WhatIsInHandAtAShortEndBeginsNewEpisodes) {
  TicketOffice office = OneGroupEach(false);
  ASSERT_THAT(office.Grant(absl::Seconds(1)), SizeIs(2));  // 3 and 4.
  Serve(&office, kAda, 3, absl::Seconds(2));
  EXPECT_THAT(office.EndIteration(), ElementsAre(0));
  office.OpenIteration(3);
  EXPECT_FALSE(office.Accept(kBob, 4, absl::Seconds(3)));
  for (const auto& [actor, ticket] : office.Grant(absl::Seconds(3))) {
    EXPECT_EQ(ticket.episodes_since() == ticket.id(), actor == kBob);
  }
  EXPECT_EQ(office.groups().restarted_episodes(), 2u);
}

TEST(StickyGroups, AnotherShareBeginsNewEpisodes) {
  TicketOffice office = OneGroupEach(true);
  office.TakeShare(4, 2);
  office.OpenTickets(1);
  const Grants grants = office.Grant(absl::Seconds(1));
  ASSERT_THAT(grants, SizeIs(1));
  EXPECT_EQ(grants[0].second.episodes_since(), grants[0].second.id());
  EXPECT_EQ(office.groups().restarted_episodes(), 2u);
}

TEST(TicketState, RowsAndJoinAreInverse) {
  TicketState all = State("aaaaaaaabbbbbbbbcccccccc", 3);
  all.policy_state = all.env_state;
  all.policy_state->set_dtype(v1::DATA_TYPE_FLOAT32);
  const TicketState first = Rows(all, 0, 2), last = Rows(all, 2, 1);
  EXPECT_EQ(first.env_state->data(), "aaaaaaaabbbbbbbb");
  EXPECT_THAT(last.policy_state->shape(), ElementsAre(1, 1));
  const TicketState joined = Join({&first, &last});
  EXPECT_EQ(joined.env_state->SerializeAsString(), all.env_state->SerializeAsString());
  EXPECT_EQ(joined.policy_state->SerializeAsString(), all.policy_state->SerializeAsString());
  // Of what one part lacks there is none.
  TicketState half = last;
  half.policy_state.reset();
  EXPECT_FALSE(Join({&first, &half}).policy_state);
  EXPECT_TRUE(Join({&first, &half}).env_state);
  EXPECT_TRUE(TicketState().empty());
}

}  // namespace
}  // namespace skein
