// SPDX-License-Identifier: Apache-2.0
// The ticket office with an iteration open behind the front.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/learner/ticket_office_grants.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Serves `ticket` by `actor`; returns the iteration that it was for.
uint32_t Serve(TicketOffice* office, const ConnectionId& actor, uint64_t ticket, absl::Duration now = kNow,
               char state = 'x') {
  const auto piece = office->Accept(actor, ticket, now);
  EXPECT_TRUE(piece);
  if (!piece) return 99;
  office->Commit(piece->group, State(std::string(8, state), 1));
  return piece->iteration;
}

TEST(TicketOffice, GrantsTicketsOfTheFrontFirst) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.OpenIteration(5);
  office.OpenIteration(6);
  // Tickets 1 and 2 of the front; group 0's next, 3, waits for group 1's.
  const uint64_t want[][2] = {{1, 5}, {2, 5}, {3, 6}, {4, 6}};
  for (const auto& [id, version] : want) {
    const Grants grants = office.Grant(kNow);
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_EQ(grants[0].second.id(), id);
    EXPECT_EQ(grants[0].second.policy_version(), version);
    EXPECT_EQ(Serve(&office, kAda, id), version - 5);
  }
  EXPECT_TRUE(office.groups().complete());
  EXPECT_THAT(office.EndIteration(), ElementsAre(0, 1));
  EXPECT_THAT(office.EndIteration(), ElementsAre(0, 1));
  EXPECT_THAT(office.Grant(kNow), IsEmpty());
}

TEST(TicketOffice, TicketsNameThePhaseOfTheirIteration) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(5, 0);
  office.OpenIteration(6, 1);
  std::vector<uint32_t> phases;
  while (!office.groups().complete()) {
    const Grants grants = office.Grant(kNow);
    ASSERT_FALSE(grants.empty());
    for (const auto& [actor, ticket] : grants) {
      EXPECT_EQ(ticket.phase(), ticket.policy_version() - 5);
      phases.push_back(ticket.phase());
      Serve(&office, kAda, ticket.id());
    }
  }
  EXPECT_THAT(phases, testing::UnorderedElementsAre(0, 0, 1, 1));
  TicketOffice async = MakeOffice(2, 1, 1, 1);
  async.AddActor(kAda, 2, 2);
  async.SetEnvPhase(3);
  async.OpenTickets(2);
  for (const auto& [actor, ticket] : async.Grant(kNow)) EXPECT_EQ(ticket.phase(), 3u);
}

TEST(TicketOffice, ADoneGroupGoesOnWhenTheIterationBehindIsOpened) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(5);
  ASSERT_EQ(office.Grant(kNow).size(), 2u);
  Serve(&office, kAda, 1, kNow, 'a');
  const auto accepted = office.Accept(kAda, 2, kNow);
  ASSERT_TRUE(accepted);
  office.OpenIteration(6);
  Grants grants = office.Grant(kNow);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].second.id(), 3u);
  EXPECT_EQ(grants[0].second.env_state().data(), std::string(8, 'a'));
  // Group 1 was being copied meanwhile.
  office.Commit(accepted->group, State(std::string(8, 'b'), 1));
  grants = office.Grant(kNow);
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].second.policy_version(), 6u);
  EXPECT_EQ(grants[0].second.env_state().data(), std::string(8, 'b'));
}

TEST(TicketOffice, EnvStateIsWhereTheFrontBegins) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(5);
  office.OpenIteration(6);
  ASSERT_EQ(office.Grant(kNow).size(), 2u);
  Serve(&office, kAda, 1, kNow, 'a');
  Serve(&office, kAda, 2, kNow, 'b');
  ASSERT_EQ(office.Grant(kNow).size(), 2u);
  EXPECT_EQ(Serve(&office, kAda, 3, kNow, 'c'), 1u);
  EXPECT_FALSE(EnvState(office));
  EXPECT_THAT(office.EndIteration(), ElementsAre(0, 1));
  EXPECT_EQ(EnvState(office)->data(), std::string(8, 'a') + std::string(8, 'b'));
  // What is accepted of the one behind is still good when the front has ended.
  const auto piece = office.Accept(kAda, 4, kNow);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->iteration, 0u);
  office.OpenIteration(7);
  office.Commit(piece->group, State(std::string(8, 'd'), 1));
  EXPECT_THAT(office.EndIteration(), ElementsAre(0, 1));
  EXPECT_EQ(EnvState(office)->data(), std::string(8, 'c') + std::string(8, 'd'));
}

TEST(TicketOffice, PrefetchesWhatIsOfTheIterationBehind) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 2, 1);
  office.OpenIteration(5);
  EXPECT_EQ(office.Grant(kNow).size(), 1u);  // The other ticket is not more than the runners there are.
  office.OpenIteration(6);
  EXPECT_EQ(office.Grant(kNow).size(), 1u);  // Two more will come.
  Serve(&office, kAda, 1);
  // It has ticket 2 of the front; tickets 3 and, once 2 is served, another one are left of the one behind: 1 + 1 > 1.
  EXPECT_EQ(office.Grant(kNow).size(), 1u);
  Serve(&office, kAda, 2);
  EXPECT_THAT(office.Grant(kNow), IsEmpty());  // The last one is not sat on.
  Serve(&office, kAda, 3);
  EXPECT_EQ(office.Grant(kNow).size(), 1u);
}

TEST(TicketOffice, AnIdleActorHelpsWithTheFrontAfterWhatIsBehind) {
  TicketOffice office = MakeOffice(2, 1, 1, 1);
  office.AddActor(kAda, 1, 1);
  office.AddActor(kBob, 1, 1);
  office.OpenIteration(5);
  office.OpenIteration(6);
  ASSERT_EQ(office.Grant(kNow).size(), 2u);  // Ada has 1, bob has 2.
  Serve(&office, kAda, 1, absl::Seconds(1));
  Grants grants = office.Grant(absl::Seconds(1));
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].second.id(), 3u);
  EXPECT_EQ(Serve(&office, kAda, 3, absl::Seconds(2.1)), 1u);
  grants = office.Grant(absl::Seconds(2.5));  // Bob is late, and nothing else is left to do.
  ASSERT_EQ(grants.size(), 1u);
  EXPECT_EQ(grants[0].first, kAda);
  EXPECT_EQ(grants[0].second.id(), 2u);
  EXPECT_EQ(grants[0].second.policy_version(), 5u);
  EXPECT_EQ(Serve(&office, kAda, 2, absl::Seconds(3.5)), 0u);
  EXPECT_FALSE(office.Accept(kBob, 2, absl::Seconds(10)));
  EXPECT_THAT(office.EndIteration(), ElementsAre(0, 1));
}

TEST(TicketOffice, TicketsAheadSurviveAnActorAndAShortFront) {
  TicketOffice office({.share_envs = 2, .fragments = 2});
  office.AddActor(kAda, 2, 2);
  office.OpenIteration(5);
  office.OpenIteration(6);
  ASSERT_EQ(office.Grant(kNow).size(), 2u);
  Serve(&office, kAda, 1, kNow, 'a');
  ASSERT_EQ(office.Grant(kNow).size(), 1u);
  Serve(&office, kAda, 3, kNow, 'b');
  Serve(&office, kAda, 2, kNow, 'c');  // Group 0 has ticket 4 of the one behind, group 1 has 5 of the front.
  office.RemoveActor(kAda);
  office.AddActor(kBob, 2, 2);
  Grants grants = office.Grant(kNow);
  ASSERT_EQ(grants.size(), 2u);
  EXPECT_EQ(grants[0].second.id(), 5u);
  EXPECT_EQ(grants[1].second.id(), 4u);
  EXPECT_THAT(office.EndIteration(), ElementsAre(0));
  EXPECT_FALSE(office.PieceOf(5));
  EXPECT_EQ(office.PieceOf(4)->iteration, 0u);
  EXPECT_EQ(Serve(&office, kBob, 4, kNow, 'd'), 0u);
  office.RemoveActor(kBob);
  office.AddActor(kAda, 2, 2);
  grants = office.Grant(kNow);
  ASSERT_EQ(grants.size(), 2u);
  for (const auto& [actor, ticket] : grants) {
    EXPECT_EQ(ticket.policy_version(), 6u);
    if (ticket.first_env() == 1) {
      EXPECT_FALSE(ticket.has_env_state());
    }
  }
}

}  // namespace
}  // namespace skein
