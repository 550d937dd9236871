// SPDX-License-Identifier: Apache-2.0
// Of policies with a memory: a column begins with the state that its first ticket carried, to the bit, whatever became
// of tickets in between.
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/learner/collector_fixture.h"

namespace skein {
namespace {

Collector::Options Remembering(Collector::Options options) {
  options.shape.policy_state_size = 3;
  return options;
}
Collector::Options Async(Collector::Options options) {
  options.async = Collector::Async{2, 2};
  return Remembering(options);
}

// Four environments in two groups, two fragments of each in an iteration.
class CollectorMemory : public CollectorTest {
 protected:
  explicit CollectorMemory(const Collector::Options& options = Remembering(WithFragments(MakeOptions(), 2)))
      : CollectorTest(options), shape_(options.shape) {}

  // What the actor remembers after a ticket; as distinct as tickets are.
  SampleFragment Play(const v1::Ticket& ticket, const std::vector<SampleEnd>& ends = {}) {
    SampleFragment fragment = Serve(kAda, ticket);
    const v1::FragmentHeader header = fragment.header;
    fragment = MakeSampleFragment(shape_, 0, ends);
    const uint32_t truncations = fragment.header.truncations(), episodes = fragment.header.episodes();
    fragment.header = header;
    fragment.header.set_truncations(truncations);
    fragment.header.set_episodes(episodes);
    std::string& state = fragment.Find("policy_state")->data;
    for (size_t i = 0; i < state.size() / sizeof(float); ++i) {
      const float value = static_cast<float>(ticket.id() % 1000) + 0.1f * static_cast<float>(i);
      std::memcpy(state.data() + i * sizeof(float), &value, sizeof(float));
    }
    return fragment;
  }
  v1::ReceiptResult Deliver(const SampleFragment& fragment) {
    return collector_.Receive(kAda, ReceivedFragment(fragment).frame(), 1).result();
  }
  // Takes all tickets until none is left; returns those that were served, in order.
  std::vector<v1::Ticket> PlayAll() {
    std::vector<v1::Ticket> served;
    for (auto grants = collector_.TakeGrants(); !grants.empty(); grants = collector_.TakeGrants()) {
      for (const auto& [actor, ticket] : grants) {
        EXPECT_EQ(Deliver(Play(ticket)), v1::RECEIPT_RESULT_ACCEPTED);
        served.push_back(ticket);
      }
    }
    return served;
  }
  static std::string FirstStates(const Collector::Iteration& iteration) {
    const auto values = iteration.batch->values<char>("first_policy_state");
    return {values.data(), values.size()};
  }
  std::string Zeros(int64_t groups) const {
    return std::string(static_cast<size_t>(groups * shape_.group_envs * shape_.policy_state_size) * sizeof(float),
                       '\0');
  }

  const FragmentShape shape_;
};

TEST_F(CollectorMemory, AColumnBeginsWithWhatItsFirstTicketCarried) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  EXPECT_EQ(PlayAll().size(), 4u);
  auto iteration = Take();
  ASSERT_TRUE(iteration);
  EXPECT_EQ(FirstStates(*iteration), Zeros(2));
  ASSERT_TRUE(iteration->state && iteration->state->policy_state);
  const std::string after = iteration->state->policy_state->data();
  EXPECT_NE(after, Zeros(2));

  collector_.OpenIteration(2);
  const std::vector<v1::Ticket> served = PlayAll();
  iteration = Take();
  ASSERT_TRUE(iteration);
  // The first ticket of each group, not the second, whose state came from within the iteration.
  std::string carried;
  for (const uint32_t group : {0, 1}) {
    for (const v1::Ticket& ticket : served) {
      if (ticket.first_env() != 2 * group) continue;
      carried += ticket.policy_state().data();
      break;
    }
  }
  EXPECT_EQ(FirstStates(*iteration), carried);
  EXPECT_EQ(carried, after);
}

TEST_F(CollectorMemory, AnAbandonedFragmentLeavesNoStateBehind) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  PlayAll();
  const auto before = Take();
  ASSERT_TRUE(before && before->state);
  collector_.OpenIteration(2);
  // Refused: its values are not finite. Its ticket is granted again, with the state from before.
  const auto grants = collector_.TakeGrants();
  ASSERT_EQ(grants.size(), 2u);
  SampleFragment bad = Play(grants[0].second);
  const float infinite = std::numeric_limits<float>::infinity();
  std::memcpy(bad.Find("reward")->data.data(), &infinite, sizeof infinite);
  EXPECT_EQ(Deliver(bad), v1::RECEIPT_RESULT_REJECTED);
  // The other one is never delivered: its actor connects anew.
  Open(kAda, 2);
  works_[kAda] = {};
  for (const auto& [actor, ticket] : collector_.TakeGrants()) {
    const uint32_t group = ticket.first_env() / 2;
    const std::string& all = before->state->policy_state->data();
    EXPECT_EQ(ticket.policy_state().data(), all.substr(group * all.size() / 2, all.size() / 2));
  }
}

TEST_F(CollectorMemory, StepsSayWhereEpisodesEnded) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  bool first = true;
  for (auto grants = collector_.TakeGrants(); !grants.empty(); grants = collector_.TakeGrants()) {
    for (const auto& [actor, ticket] : grants) {
      // In the first fragment of group 0 environment 1 terminates in step 0 and environment 0 is cut off in step 1.
      const bool ends = first && ticket.first_env() == 0;
      if (ends) first = false;
      ASSERT_EQ(
          Deliver(Play(ticket, ends ? std::vector<SampleEnd>{{0, 1, false}, {1, 0, true}} : std::vector<SampleEnd>{})),
          v1::RECEIPT_RESULT_ACCEPTED);
    }
  }
  const auto iteration = Take();
  ASSERT_TRUE(iteration);
  EXPECT_THAT(iteration->batch->values<uint8_t>("ended"),
              testing::ElementsAre(0, 1, 0, 0, /**/ 1, 0, 0, 0, /**/ 0, 0, 0, 0, /**/ 0, 0, 0, 0));
}

class AsyncCollectorMemory : public CollectorMemory {
 protected:
  AsyncCollectorMemory() : CollectorMemory(Async(MakeOptions())) {}
};

TEST_F(AsyncCollectorMemory, EachFragmentBeginsWithWhatItsTicketCarried) {
  Open(kAda, 2);
  collector_.OpenIteration(1);
  const auto grants = collector_.TakeGrants();
  ASSERT_EQ(grants.size(), 2u);
  const auto play = [&](const v1::Ticket& ticket) {
    SampleFragment fragment = Play(ticket);
    fragment.header.set_policy_version(1);
    return Deliver(fragment);
  };
  // Group 1 twice, before group 0.
  ASSERT_EQ(play(grants[1].second), v1::RECEIPT_RESULT_ACCEPTED);
  const auto again = collector_.TakeGrants();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0].second.has_policy_state());
  ASSERT_EQ(play(again[0].second), v1::RECEIPT_RESULT_ACCEPTED);
  const auto iteration = Take();
  ASSERT_TRUE(iteration);
  EXPECT_EQ(FirstStates(*iteration), Zeros(1) + again[0].second.policy_state().data());
}

TEST_F(CollectorMemory, AFragmentCarriesOneState) {
  const Schema schema = MakeSchema(shape_);
  int64_t states = 0;
  for (const Field& field : schema.fields) {
    if (field.name.find("policy_state") == std::string::npos) continue;
    ++states;
    EXPECT_EQ(schema.WireBytes(field, {}), shape_.group_envs * 3 * 4);
  }
  EXPECT_EQ(states, 1);
}

}  // namespace
}  // namespace skein
