// SPDX-License-Identifier: Apache-2.0
// Two iterations open at once: the front, and one behind it in which groups go on that are done with the front.
#include <array>
#include <limits>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "tests/learner/collector_fixture.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// What the state of group `group` begins with: a fragment's state [2, 4] begins with its offset.
double StateOf(const v1::Tensor& env_state, uint32_t group) {
  return reinterpret_cast<const double*>(env_state.data().data())[8 * group];
}

class RunAheadTest : public CollectorTest {};
class RunAheadInFragmentsTest : public CollectorTest {
 protected:
  RunAheadInFragmentsTest() : CollectorTest(WithFragments(MakeOptions(), 2)) {}
};

TEST_F(RunAheadTest, AGroupThatIsDoneGoesOnInTheIterationBehind) {
  collector_.OpenIteration(1);
  collector_.OpenIteration(2);
  const v1::Ticket first = TakeTicket(0);
  EXPECT_EQ(first.policy_version(), 1u);
  SampleFragment fragment = Serve(kAda, first, 100);
  fragment.header.mutable_stage_seconds()->set_env_step(0.5);
  ASSERT_EQ(Deliver(kAda, fragment), v1::RECEIPT_RESULT_ACCEPTED);
  const v1::Ticket behind = TakeTicket(0);
  EXPECT_EQ(behind.policy_version(), 2u);
  EXPECT_EQ(StateOf(behind.env_state(), 0), 100);
  EXPECT_EQ(TakeTicket(1).policy_version(), 1u);
  fragment = Serve(kAda, behind, 200);
  fragment.header.mutable_stage_seconds()->set_env_step(8);
  ASSERT_EQ(Deliver(kAda, fragment), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_FALSE(Take());
  ServeGroup(1, 300);

  const auto front = Take();
  ASSERT_TRUE(front);
  EXPECT_EQ(front->policy_version, 1u);
  EXPECT_EQ(front->batch->values<float>("obs")[0], 100);
  EXPECT_EQ(front->batch->values<float>("obs")[2 * 3], 300);
  EXPECT_EQ(StateOf(*front->state->env_state, 0), 100);  // Where the front ended, not where group 0 is.
  EXPECT_EQ(StateOf(*front->state->env_state, 1), 300);
  EXPECT_EQ(front->stage_seconds.env_step(), 0.5);
  EXPECT_EQ(collector_.queued_fragments(), 3u);
  EXPECT_FALSE(Take());
  ServeGroup(1, 400);
  const auto next = Take();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->policy_version, 2u);
  EXPECT_EQ(next->batch->values<float>("obs")[0], 200);
  EXPECT_EQ(next->batch->values<float>("obs")[2 * 3], 400);
  EXPECT_EQ(StateOf(*next->state->env_state, 0), 200);
  EXPECT_EQ(next->stage_seconds.env_step(), 8);
}

TEST_F(RunAheadTest, BothIterationsMayHaveTheSamePolicy) {
  collector_.OpenIteration(1);
  collector_.OpenIteration(1);
  ServeGroup(0, 100);
  ServeGroup(0, 200);
  ServeGroup(1, 300);
  EXPECT_EQ(Take()->batch->values<float>("obs")[0], 100);
}

TEST_F(RunAheadTest, ATicketIsServedWithItsOwnIterationsPolicy) {
  collector_.OpenIteration(1);
  collector_.OpenIteration(2);
  ServeGroup(0, 100);
  for (const uint32_t group : {0u, 1u}) {
    SampleFragment fragment = Serve(kAda, TakeTicket(group));
    fragment.header.set_policy_version(group == 0 ? 1 : 2);  // The other's.
    EXPECT_EQ(Deliver(kAda, fragment), v1::RECEIPT_RESULT_STALE);
  }
  ServeGroup(0, 200);
  ServeGroup(1, 300);
  EXPECT_TRUE(Take());
}

// Opening one behind an open one takes the buffer of the batch that was trained on.
TEST_F(RunAheadTest, TwoBuffersAreEnough) {
  collector_.OpenIteration(1);
  collector_.OpenIteration(1);
  std::array<const Columns*, 2> buffers = {};
  for (int iteration = 1; iteration <= 6; ++iteration) {
    const auto offset = static_cast<float>(100 * iteration);
    if (iteration == 1) ServeGroup(0, offset);
    ServeGroup(0, offset + 100);  // Ahead.
    ServeGroup(1, offset + 1);
    const auto taken = Take();
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->batch->values<float>("obs")[0], offset);
    EXPECT_EQ(taken->batch->values<float>("obs")[2 * 3], offset + 1);
    if (iteration <= 2) buffers[iteration - 1] = taken->batch;
    EXPECT_EQ(taken->batch, buffers[(iteration - 1) % 2]);
    collector_.Trained(2 * kFragmentSteps);
    collector_.OpenIteration(iteration + 1);
  }
  EXPECT_NE(buffers[0], buffers[1]);
  EXPECT_EQ(collector_.account().trained(), 12 * kFragmentSteps);
  EXPECT_EQ(collector_.account().pending(), kFragmentSteps);
}

TEST_F(RunAheadInFragmentsTest, AnIterationEndsShortWithAnotherBehindIt) {
  collector_.OpenIteration(1);
  for (uint32_t group : {0, 1}) {
    ServeGroup(group, 10);
    ServeGroup(group, 20);
  }
  ASSERT_TRUE(Take());
  collector_.OpenIteration(2);
  collector_.OpenIteration(3);
  for (float offset : {100, 200, 300}) ServeGroup(0, offset);  // One fragment ahead.
  ServeGroup(1, 500);
  // Actor ada has the second ticket of both groups in hand.
  Open(kAda, 2);
  const auto held = collector_.TakeGrants();
  ASSERT_THAT(held, SizeIs(2));

  const auto partial = collector_.TakeWhatIsThere();
  ASSERT_TRUE(partial);
  EXPECT_THAT(partial->batch->slots(), ElementsAre(0));
  EXPECT_EQ(partial->policy_version, 2u);
  EXPECT_EQ(partial->batch->values<float>("obs")[0], 100);
  EXPECT_EQ(partial->batch->values<float>("obs")[2 * 2 * 3], 200);
  EXPECT_EQ(StateOf(*partial->state->env_state, 0), 200);
  EXPECT_EQ(StateOf(*partial->state->env_state, 1), 20);
  EXPECT_EQ(collector_.account().stale(), kFragmentSteps);
  EXPECT_EQ(collector_.queued_fragments(), 2u + 1u + 4u);  // Of the front, behind it, and of the first, not booked yet.

  for (const auto& [actor, ticket] : held) {
    const bool ahead = ticket.first_env() == 0;
    EXPECT_EQ(ticket.policy_version(), ahead ? 3u : 2u);
    EXPECT_EQ(Deliver(kAda, Serve(kAda, ticket, 400)), ahead ? v1::RECEIPT_RESULT_ACCEPTED : v1::RECEIPT_RESULT_STALE);
  }
  const v1::Ticket again = TakeTicket(1);
  EXPECT_EQ(again.policy_version(), 3u);
  EXPECT_EQ(StateOf(again.env_state(), 0), 20);
  ServeGroup(1, 600);
  ServeGroup(1, 700);
  const auto whole = Take();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->policy_version, 3u);
  // obs [5, 4, 3]: the first fragments' row 0, the second ones' row 2.
  EXPECT_EQ(whole->batch->values<float>("obs")[0], 300);
  EXPECT_EQ(whole->batch->values<float>("obs")[2 * 3], 600);
  EXPECT_EQ(whole->batch->values<float>("obs")[2 * 4 * 3], 400);
  EXPECT_EQ(whole->batch->values<float>("obs")[2 * 4 * 3 + 2 * 3], 700);
}

TEST_F(RunAheadTest, DataAreOwedFromWhenTheirIterationIsTheFront) {
  collector_.OpenIteration(1);
  ServeGroup(0, 100);
  ServeGroup(1, 100);
  EXPECT_EQ(collector_.waiting(), absl::ZeroDuration());
  collector_.OpenIteration(2);
  EXPECT_EQ(collector_.waiting(), absl::ZeroDuration());
  ASSERT_TRUE(Take());
  EXPECT_GT(collector_.waiting(), absl::ZeroDuration());
  collector_.OpenIteration(3);
  ServeGroup(0, 200);
  ServeGroup(0, 300);
  EXPECT_GT(collector_.waiting(), absl::ZeroDuration());
  ServeGroup(1, 200);
  EXPECT_EQ(collector_.waiting(), absl::ZeroDuration());
  ServeGroup(1, 300);
  ASSERT_TRUE(Take());
  EXPECT_EQ(collector_.waiting(), absl::ZeroDuration());  // The one behind is complete already.
  ASSERT_TRUE(Take());
}

TEST_F(RunAheadTest, StopVoidsTheTicketsOfBoth) {
  collector_.OpenIteration(1);
  collector_.OpenIteration(2);
  ServeGroup(0, 100);
  Open(kAda, 2);
  const auto held = collector_.TakeGrants();
  ASSERT_THAT(held, SizeIs(2));
  collector_.Stop();
  for (const auto& [actor, ticket] : held) EXPECT_EQ(Deliver(kAda, Serve(kAda, ticket)), v1::RECEIPT_RESULT_STALE);
  EXPECT_FALSE(Take());
  EXPECT_FALSE(collector_.TakeWhatIsThere());
  EXPECT_EQ(collector_.CloseAccounts().lost(), kFragmentSteps);
}

// Every second time group 0 is one iteration ahead: its fragment is copied while the front is ended.
TEST_F(RunAheadTest, TheFrontEndsWhileFragmentsOfTheOneBehindArrive) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  collector_.OpenIteration(2);
  ServeGroup(0, 1);
  ServeGroup(1, 1);
  for (int iteration = 1; iteration <= 50; ++iteration) {
    Open(kAda, 2);
    std::vector<SampleFragment> fragments;
    for (const auto& [actor, ticket] : collector_.TakeGrants()) {
      fragments.push_back(Serve(kAda, ticket, static_cast<float>(iteration + 1)));
    }
    ASSERT_THAT(fragments, SizeIs(2));
    std::thread deliverer([&] {
      for (const auto& fragment : fragments) {
        EXPECT_EQ(collector_.Receive(kAda, ReceivedFragment(fragment).frame(), 1).result(),
                  v1::RECEIPT_RESULT_ACCEPTED);
      }
    });
    const auto taken = iteration % 2 == 0 ? collector_.TakeWhatIsThere() : Take();
    deliverer.join();
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->batch->columns(), 4);
    EXPECT_EQ(taken->batch->values<float>("obs")[0], iteration);
    EXPECT_EQ(StateOf(*taken->state->env_state, 1), iteration);
    collector_.Trained(2 * kFragmentSteps);
    collector_.OpenIteration(iteration + 2);
    ExpectBalance();
  }
  EXPECT_EQ(collector_.account().stale(), 0u);
}

class AnyOrderTest : public CollectorTest, public testing::WithParamInterface<int> {
 protected:
  AnyOrderTest() : CollectorTest(WithFragments(MakeOptions(), Fragments())) {}
  static uint32_t Fragments() { return 1 + GetParam() % 3; }
};

// Serves, spoils, repeats and loses fragments in random order, opens one iteration or two, and ends them whenever it
// likes. Each fragment counts on by one from the state that its ticket has, so a group's data must count on from what
// was last trained on.
TEST_P(AnyOrderTest, EveryStepHasOneFateAndGroupsGoOnFromWhatWasTrainedOn) {
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  const auto chance = [&](uint32_t percent) { return random() % 100 < percent; };
  const uint32_t ahead = GetParam() % 2 == 0 ? 2 : 1;
  uint64_t collected = 0, trained = 0, stale = 0, rejected = 0, version = 0;
  std::map<uint64_t, uint64_t> admitted;  // Of each open iteration's version.
  std::array<double, 2> trained_to = {};  // Of each group.
  std::vector<std::pair<ConnectionId, v1::Ticket>> held;
  Open(kAda, 2);
  Open(kBob);
  const auto open = [&] {
    collector_.OpenIteration(++version);
    admitted[version] = 0;
  };
  const auto finish = [&](const Collector::Iteration& iteration) {
    const Columns& batch = *iteration.batch;
    const uint64_t steps = batch.steps() * batch.share_envs();
    ASSERT_EQ(iteration.policy_version, admitted.begin()->first);
    ASSERT_LE(steps, admitted.begin()->second);
    stale += admitted.begin()->second - steps;
    admitted.erase(admitted.begin());
    trained += steps;
    for (size_t k = 0; k < batch.slots().size(); ++k) {
      for (uint32_t fragment = 0; fragment < Fragments(); ++fragment) {
        const size_t first = 2 * fragment * batch.columns() + 2 * k;
        ASSERT_EQ(batch.values<float>("obs")[3 * first], ++trained_to[batch.slots()[k]]);
      }
    }
    const bool all = trained_to[0] > 0 && trained_to[1] > 0;
    ASSERT_EQ(iteration.state.has_value(), all);
    for (uint32_t group = 0; all && group < 2; ++group)
      ASSERT_EQ(StateOf(*iteration.state->env_state, group), trained_to[group]);
    collector_.Trained(steps);
  };
  for (int i = 0; i < 400; ++i) {
    if (admitted.empty() || (admitted.size() < ahead && chance(50))) open();
    for (auto& grant : collector_.TakeGrants()) held.push_back(std::move(grant));
    if (chance(4)) Open(chance(50) ? kAda : kBob, 1 + random() % 2);  // A new connection; what it held it holds still.
    if (chance(10)) {
      const auto iteration = collector_.TakeWhatIsThere();
      ASSERT_TRUE(iteration);
      finish(*iteration);
    } else if (const auto iteration = Take()) {
      finish(*iteration);
    } else if (!held.empty()) {
      const size_t pick = random() % held.size();
      const auto [actor, ticket] = held[pick];
      if (!chance(10)) held.erase(held.begin() + pick);  // Else it will be served once more.
      const double from = ticket.has_env_state() ? StateOf(ticket.env_state(), 0) : 0;
      SampleFragment fragment = Serve(actor, ticket, static_cast<float>(from + 1));
      if (chance(3)) SetElement(fragment.Find("reward"), 1, std::numeric_limits<float>::quiet_NaN());
      collected += kFragmentSteps;
      switch (Deliver(actor, fragment)) {
        case v1::RECEIPT_RESULT_ACCEPTED:
          admitted.at(ticket.policy_version()) += kFragmentSteps;
          break;
        case v1::RECEIPT_RESULT_STALE:
          stale += kFragmentSteps;
          break;
        default:
          rejected += kFragmentSteps;
      }
      if (chance(5)) {
        EXPECT_EQ(Deliver(actor, fragment), v1::RECEIPT_RESULT_DUPLICATE);
      }
    }
    if (HasFatalFailure()) return;
    uint64_t pending = 0;
    for (const auto& [version_of, steps] : admitted) pending += steps;
    const v1::StepAccount account = collector_.account();
    ASSERT_EQ(account.collected(), collected);
    ASSERT_EQ(account.trained(), trained);
    ASSERT_EQ(account.stale(), stale);
    ASSERT_EQ(account.rejected(), rejected);
    ASSERT_EQ(account.pending(), pending);
    ASSERT_EQ(collector_.queued_fragments(), pending / kFragmentSteps);
    ExpectBalance();
  }
  EXPECT_GT(trained, 0u);
}
INSTANTIATE_TEST_SUITE_P(Seeds, AnyOrderTest, testing::Range(0, 24));

}  // namespace
}  // namespace skein
