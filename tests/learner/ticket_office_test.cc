// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learner/ticket_office_grants.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

v1::Ticket MakeTicket(uint64_t id) {
  v1::Ticket ticket;
  ticket.set_id(id);
  return ticket;
}

// Accepts and commits every ticket of `grants`.
void ServeAll(TicketOffice* office, const Grants& grants) {
  for (const auto& [actor, ticket] : grants) {
    const auto piece = office->Accept(actor, ticket.id(), kNow);
    ASSERT_TRUE(piece);
    office->Commit(piece->group, State(std::string(16, static_cast<char>('a' + piece->group)), 2));
  }
}

TEST(TicketOffice, CutsTheEnvironmentsIntoGroups) {
  TicketOffice office = MakeOffice(6, 2, 100, 5);
  EXPECT_EQ(office.groups().all().size(), 3u);
  EXPECT_TRUE(office.groups().complete());
  office.AddActor(kAda, 9, 9);
  office.OpenIteration(7);
  EXPECT_FALSE(office.groups().complete());
  const Grants grants = office.Grant(kNow);
  ASSERT_EQ(grants.size(), 3u);
  for (uint32_t b = 0; b < 3; ++b) {
    const v1::Ticket& ticket = grants[b].second;
    EXPECT_EQ(grants[b].first, kAda);
    EXPECT_EQ(ticket.id(), 5 + b);
    EXPECT_EQ(ticket.policy_version(), 7u);
    EXPECT_EQ(ticket.first_env(), 2 * b);
    EXPECT_EQ(ticket.group_envs(), 2u);
    EXPECT_EQ(ticket.steps(), 100u);
    EXPECT_FALSE(ticket.has_env_state());
  }
  EXPECT_THAT(office.Grant(kNow), IsEmpty());
}

TEST(TicketOffice, TicketIdsBeginAtOne) {
  TicketOffice office = MakeOffice(1, 1, 1, 0);
  office.AddActor(kAda, 1, 1);
  office.OpenIteration(1);
  EXPECT_EQ(office.Grant(kNow).at(0).second.id(), 1u);
}

TEST(TicketOffice, GrantsNothingBeforeAnIterationOrWithoutActors) {
  TicketOffice office = MakeOffice(4, 2, 1, 1);
  office.AddActor(kAda, 2, 2);
  EXPECT_THAT(office.Grant(kNow), IsEmpty());
  office.RemoveActor(kAda);
  office.OpenIteration(1);
  EXPECT_THAT(office.Grant(kNow), IsEmpty());
}

TEST(TicketOffice, SharesTicketsByRunners) {
  TicketOffice office = MakeOffice(6, 1, 1, 1);
  office.AddActor(kAda, 2, 2);
  office.AddActor(kBob, 4, 4);
  office.OpenIteration(1);
  EXPECT_THAT(CountByActor(office.Grant(kNow)), ElementsAre(Pair("ada", 2), Pair("bob", 4)));
  // With fewer tickets than runners, each has at most one per runner: 3 tickets over 2 + 4 runners.
  TicketOffice scarce = MakeOffice(3, 1, 1, 1);
  scarce.AddActor(kAda, 2, 2);
  scarce.AddActor(kBob, 4, 4);
  scarce.OpenIteration(1);
  // Held per runner: ada 0/2, bob 0/4 -> ada; ada 1/2, bob 0/4 -> bob; bob 1/4 -> bob.
  EXPECT_THAT(CountByActor(scarce.Grant(kNow)), ElementsAre(Pair("ada", 1), Pair("bob", 2)));
}

TEST(TicketOffice, WhereThereAreMoreActorsThanTicketsAllHaveTheirTurn) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  std::map<std::string, int> served;
  for (int iteration = 1; iteration <= 6; ++iteration) {
    if (iteration <= 3) office.AddActor({"actor-" + std::to_string(iteration), 1}, 2, 1);
    office.OpenIteration(iteration);
    for (Grants grants = office.Grant(kNow); !grants.empty(); grants = office.Grant(kNow)) {
      for (const auto& [actor, count] : CountByActor(grants)) served[actor] += count;
      ServeAll(&office, grants);
    }
    ASSERT_TRUE(office.groups().complete());
    office.EndIteration();
  }
  // 1 and 1, 1 and 2, 1 and 2, 3 and 1, 2 and 3, 1 and 2: who joins comes after those who are there.
  EXPECT_THAT(served, ElementsAre(Pair("actor-1", 6), Pair("actor-2", 4), Pair("actor-3", 2)));
}

TEST(TicketOffice, NobodyGetsMoreByConnectingAgain) {
  TicketOffice office = MakeOffice(1, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.AddActor(kBob, 1, 1);
  std::map<std::string, int> served;
  for (int iteration = 1; iteration <= 10; ++iteration) {
    office.AddActor(kAda, 1, 1);
    office.OpenIteration(iteration);
    const Grants grants = office.Grant(kNow);
    for (const auto& [actor, count] : CountByActor(grants)) served[actor] += count;
    ServeAll(&office, grants);
    office.EndIteration();
  }
  EXPECT_THAT(served, ElementsAre(Pair("bob", 10)));
}

TEST(TicketOffice, PrefetchesOnlyWhileEveryRunnerCanStillHaveOne) {
  // Two actors of one runner and two credits each. Ten tickets: 2 at work leave 8; prefetching goes on while more than
  // 2 are ungranted, up to 2 for each actor: 4 granted, 6 left.
  TicketOffice office = MakeOffice(10, 1, 1, 1);
  office.AddActor(kAda, 2, 1);
  office.AddActor(kBob, 2, 1);
  office.OpenIteration(1);
  EXPECT_THAT(CountByActor(office.Grant(kNow)), ElementsAre(Pair("ada", 2), Pair("bob", 2)));
  // Four tickets: 2 at work leave 2, which is not more than the runners.
  TicketOffice scarce = MakeOffice(4, 1, 1, 1);
  scarce.AddActor(kAda, 2, 1);
  scarce.AddActor(kBob, 2, 1);
  scarce.OpenIteration(1);
  EXPECT_THAT(CountByActor(scarce.Grant(kNow)), ElementsAre(Pair("ada", 1), Pair("bob", 1)));
}

TEST(TicketOffice, AFastActorServesMost) {
  TicketOffice office = MakeOffice(8, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.AddActor(kBob, 1, 1);
  office.OpenIteration(1);
  Grants grants = office.Grant(kNow);
  ASSERT_EQ(grants.size(), 2u);
  std::map<std::string, int> served;
  uint64_t bobs = 0;
  // Bob sits on his ticket; ada answers each of hers at once.
  while (!grants.empty()) {
    Grants next;
    for (const auto& [actor, ticket] : grants) {
      if (actor == kBob) {
        bobs = ticket.id();
        continue;
      }
      ++served[actor.actor_id];
      const auto piece = office.Accept(actor, ticket.id(), kNow);
      ASSERT_TRUE(piece);
      office.Commit(piece->group, State(std::string(8, 'x'), 1));
      for (auto& grant : office.Grant(kNow)) next.push_back(std::move(grant));
    }
    grants = std::move(next);
  }
  EXPECT_EQ(served["ada"], 7);
  EXPECT_FALSE(office.groups().complete());
  EXPECT_THAT(office.Holders(), ElementsAre(Pair(kBob, 1u)));
  office.Commit(office.Accept(kBob, bobs, kNow)->group, State(std::string(8, 'x'), 1));
  EXPECT_TRUE(office.groups().complete());
}

TEST(TicketOffice, TicketsOfAnActorThatWentAwayAreGrantedAgain) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(1);
  ASSERT_EQ(office.Grant(kNow).size(), 2u);
  office.AddActor(kBob, 2, 2);
  EXPECT_THAT(office.Grant(kNow), IsEmpty());
  office.RemoveActor(kAda);
  EXPECT_EQ(office.num_actors(), 1);
  const Grants again = office.Grant(kNow);
  EXPECT_THAT(CountByActor(again), ElementsAre(Pair("bob", 2)));
  EXPECT_EQ(again[0].second.id(), 1u);
  EXPECT_EQ(again[1].second.id(), 2u);
  // Ada comes back with one of them first: bob's fragment for it is then void.
  EXPECT_TRUE(office.Accept(kAda, 1, kNow));
  EXPECT_FALSE(office.Accept(kBob, 1, kNow));
  EXPECT_THAT(office.Holders(), ElementsAre(Pair(kBob, 1u)));
}

TEST(TicketOffice, AnActorThatConnectsAnewGetsItsTicketsAnew) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(1);
  ASSERT_EQ(office.Grant(kNow).size(), 2u);
  office.AddActor(kAda, 2, 2);
  EXPECT_EQ(office.num_actors(), 1);
  EXPECT_THAT(office.Holders(), IsEmpty());
  EXPECT_EQ(office.Grant(kNow).size(), 2u);
}

TEST(TicketOffice, ATicketIsAcceptedOnce) {
  TicketOffice office = MakeOffice(4, 2, 1, 1);
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(1);
  office.Grant(kNow);
  EXPECT_EQ(office.Accept(kAda, 2, kNow)->group, 1u);
  EXPECT_FALSE(office.Accept(kAda, 2, kNow));
  EXPECT_FALSE(office.Accept(kAda, 0, kNow));
  EXPECT_FALSE(office.Accept(kAda, 99, kNow));
}

TEST(TicketOffice, ATicketIsAcceptedFromThoseWhoGotIt) {
  TicketOffice office = MakeOffice(1, 1, 1, 1);
  const ConnectionId later_stay{"ada", 2}, impostor{"ada", 1, "another's"};
  office.AddActor(kAda, 1, 1);
  office.OpenIteration(1);
  ASSERT_EQ(office.Grant(kNow).size(), 1u);
  office.AddActor(kBob, 1, 1);
  EXPECT_TRUE(office.GrantedTo(kAda, 1));
  for (const ConnectionId& other : {kBob, impostor}) {
    EXPECT_FALSE(office.GrantedTo(other, 1));
    EXPECT_FALSE(office.Accept(other, 1, kNow));
  }
  EXPECT_THAT(office.Holders(), ElementsAre(Pair(kAda, 1u)));
  // An actor that goes away may come back with it, also by a new connection, when another one has it.
  office.RemoveActor(kAda);
  ASSERT_EQ(office.Grant(kNow).size(), 1u);
  EXPECT_TRUE(office.GrantedTo(kBob, 1));
  EXPECT_FALSE(office.GrantedTo(impostor, 1));
  EXPECT_TRUE(office.Accept(later_stay, 1, kNow));
  EXPECT_FALSE(office.GrantedTo(kBob, 1));  // It is void.
}

TEST(TicketOffice, SoManyWhoWentAwayCanAnswerATicketYet) {
  TicketOffice office = MakeOffice(1, 1, 1, 1);
  office.OpenIteration(1);
  office.AddActor(kBob, 1, 1);
  ASSERT_EQ(office.Grant(kNow).size(), 1u);
  office.RemoveActor(kBob);
  for (int i = 0; i < 64; ++i) {
    EXPECT_TRUE(office.GrantedTo(kBob, 1)) << i;
    const ConnectionId other{"actor-" + std::to_string(i), 1};
    office.AddActor(other, 1, 1);
    ASSERT_EQ(office.Grant(kNow).size(), 1u);
    office.RemoveActor(other);
  }
  EXPECT_FALSE(office.GrantedTo(kBob, 1));
}

TEST(TicketOffice, IsCompleteWhenEveryGroupIsCommitted) {
  TicketOffice office = MakeOffice(4, 2, 1, 1);
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(1);
  office.Grant(kNow);
  const auto first = office.Accept(kAda, 1, kNow), second = office.Accept(kAda, 2, kNow);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(office.groups().complete());
  office.Commit(first->group, State(std::string(16, 'a'), 2));
  EXPECT_FALSE(EnvState(office));
  office.Commit(first->group, State(std::string(16, 'z'), 2));  // Committed already: no effect.
  EXPECT_FALSE(office.groups().complete());
  office.Commit(second->group, State(std::string(16, 'b'), 2));
  EXPECT_TRUE(office.groups().complete());
  EXPECT_FALSE(EnvState(office));  // Where this iteration began.
  EXPECT_THAT(office.EndIteration(), ElementsAre(0, 1));
  EXPECT_EQ(EnvState(office)->data(), std::string(16, 'a') + std::string(16, 'b'));
}

TEST(TicketOffice, ARefusedTicketIsGrantedAgain) {
  TicketOffice office = MakeOffice(1, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.OpenIteration(1);
  ASSERT_EQ(office.Grant(kNow).size(), 1u);
  office.Refuse(kAda, 77);  // Nobody's.
  EXPECT_THAT(office.Grant(kNow), IsEmpty());
  office.Refuse(kAda, 1);
  const Grants again = office.Grant(kNow);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].second.id(), 1u);
  ASSERT_TRUE(office.Accept(kAda, 1, kNow));
  office.Refuse(kAda, 1);  // Served already.
  EXPECT_THAT(office.Grant(kNow), IsEmpty());
}

TEST(TicketOffice, ClosingVoidsTicketsAndLaterCommits) {
  TicketOffice office = MakeOffice(4, 2, 1, 1);
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(1);
  office.Grant(kNow);
  const auto piece = office.Accept(kAda, 1, kNow);
  ASSERT_TRUE(piece);
  office.CloseIteration();
  EXPECT_TRUE(office.groups().complete());
  EXPECT_FALSE(office.Accept(kAda, 2, kNow));
  office.Commit(piece->group, State(std::string(16, 'a'), 2));
  EXPECT_TRUE(office.groups().complete());
  EXPECT_FALSE(EnvState(office));
  EXPECT_THAT(office.Holders(), IsEmpty());
  EXPECT_THAT(office.Grant(kNow), IsEmpty());
}

TEST(TicketOffice, OfficesBesideEachOtherHaveTheirOwnIdsAndEnvironments) {
  for (uint32_t rank : {0, 1, 2}) {
    TicketOffice office({.share_envs = 4,
                         .envs_per_group = 2,
                         .steps = 1,
                         .first_ticket_id = 10,
                         .rank = rank,
                         .ranks = 3,
                         .first_env = 4 * rank});
    office.AddActor(kAda, 2, 2);
    office.OpenIteration(1);
    const Grants grants = office.Grant(kNow);
    ASSERT_EQ(grants.size(), 2u);
    // From 10 on, those that are 0, 1, 2 modulo 3: 12, 10, 11.
    const uint64_t first = rank == 0 ? 12 : 9 + rank;
    EXPECT_EQ(grants[0].second.id(), first);
    EXPECT_EQ(grants[1].second.id(), first + 3);
    EXPECT_EQ(grants[0].second.first_env(), 4 * rank);
    EXPECT_EQ(grants[1].second.first_env(), 4 * rank + 2);
    EXPECT_EQ(office.groups().FirstEnv(1), 4 * rank + 2);
  }
}

TEST(TicketOffice, AnIterationEndsWithTheGroupsThatAreDone) {
  TicketOffice office({.share_envs = 6, .envs_per_group = 2, .fragments = 2});
  office.AddActor(kAda, 3, 3);
  office.OpenIteration(1);
  const auto serve = [&](uint64_t ticket, char state) {
    const auto piece = office.Accept(kAda, ticket, kNow);
    ASSERT_TRUE(piece);
    office.Commit(piece->group, State(std::string(16, state), 2));
    office.Grant(kNow);
  };
  ASSERT_EQ(office.Grant(kNow).size(), 3u);
  serve(2, 'a');  // Group 1 has ticket 4 next.
  serve(3, 'b');  // Group 2 has ticket 5 next.
  serve(5, 'c');
  EXPECT_THAT(office.EndIteration(), ElementsAre(2));
  EXPECT_TRUE(office.groups().complete());
  EXPECT_FALSE(office.Accept(kAda, 1, kNow));
  EXPECT_FALSE(office.Accept(kAda, 4, kNow));
  office.OpenIteration(2);
  const Grants grants = office.Grant(kNow);
  ASSERT_EQ(grants.size(), 3u);
  EXPECT_FALSE(grants[0].second.has_env_state());
  EXPECT_FALSE(grants[1].second.has_env_state());
  EXPECT_EQ(grants[2].second.env_state().data(), std::string(16, 'c'));
}

TEST(TicketOffice, TheNextTicketContinuesFromTheCommittedState) {
  TicketOffice office = MakeOffice(4, 2, 1, 1);
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(1);
  ServeAll(&office, office.Grant(kNow));
  ASSERT_TRUE(office.groups().complete());
  office.EndIteration();
  office.OpenIteration(2);
  const Grants grants = office.Grant(kNow);
  ASSERT_EQ(grants.size(), 2u);
  EXPECT_EQ(grants[0].second.id(), 3u);
  EXPECT_EQ(grants[0].second.env_state().data(), std::string(16, 'a'));
  EXPECT_EQ(grants[1].second.env_state().data(), std::string(16, 'b'));
  EXPECT_THAT(grants[1].second.env_state().shape(), ElementsAre(2, 1));
}

TEST(TicketOffice, EnvStateGoesRoundThroughACheckpoint) {
  TicketOffice before = MakeOffice(4, 2, 1, 1);
  before.AddActor(kAda, 2, 2);
  before.OpenIteration(1);
  ServeAll(&before, before.Grant(kNow));
  before.EndIteration();
  const auto saved = EnvState(before);
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->name(), "env_state");
  EXPECT_EQ(saved->dtype(), v1::DATA_TYPE_FLOAT64);
  EXPECT_THAT(saved->shape(), ElementsAre(4, 1));

  TicketOffice after = MakeOffice(4, 2, 1, 100);
  after.Restore({.env_state = *saved});
  EXPECT_EQ(EnvState(after)->SerializeAsString(), saved->SerializeAsString());
  after.AddActor(kAda, 2, 2);
  after.OpenIteration(2);
  const Grants grants = after.Grant(kNow);
  EXPECT_EQ(grants[0].second.id(), 100u);
  EXPECT_EQ(grants[0].second.env_state().data(), std::string(16, 'a'));
  EXPECT_EQ(grants[1].second.env_state().data(), std::string(16, 'b'));

  // Restoring does not depend on the group size: the same run with one group.
  TicketOffice whole = MakeOffice(4, 4, 1, 1);
  whole.Restore({.env_state = *saved});
  EXPECT_EQ(EnvState(whole)->data(), saved->data());
}

TEST(TicketOffice, AGroupServesItsFragmentsOneAfterTheOther) {
  TicketOffice office({.share_envs = 2, .fragments = 2});
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(3);
  ASSERT_EQ(office.Grant(kNow).size(), 2u);  // Tickets 1 and 2.
  auto piece = office.Accept(kAda, 2, kNow);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->fragment, 0u);
  EXPECT_THAT(office.Grant(kNow), IsEmpty());  // Its data are not in place yet.
  office.Commit(piece->group, State(std::string(8, 'm'), 1));
  const Grants next = office.Grant(kNow);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].second.id(), 3u);
  EXPECT_EQ(next[0].second.first_env(), 1u);
  EXPECT_EQ(next[0].second.policy_version(), 3u);
  EXPECT_EQ(next[0].second.env_state().data(), std::string(8, 'm'));
  piece = office.Accept(kAda, 3, kNow);
  EXPECT_EQ(piece->fragment, 1u);
  office.Commit(piece->group, State(std::string(8, 'n'), 1));
  EXPECT_FALSE(office.groups().complete());
  ServeAll(&office, {{kAda, MakeTicket(1)}});
  ServeAll(&office, office.Grant(kNow));
  EXPECT_TRUE(office.groups().complete());
}

}  // namespace
}  // namespace skein
