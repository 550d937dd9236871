// SPDX-License-Identifier: Apache-2.0
#include "learner/collect/direction_collect.h"

#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/collect/direction_returns.h"
#include "tests/learner/collector_fixture.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int64_t kMostSteps = 10;  // Of an episode.

Collector::Options DirectionOptions() {
  Collector::Options options;
  options.run_id = "run";
  options.shape = MakeSampleShape({});
  options.shape.steps = 1;
  options.shape.env_state_size = 0;
  options.shape.max_episode_steps = kMostSteps;
  options.shape.direction_episodes = 1;
  options.shape.counts_observations = true;
  options.shape.spec.set_relocatable(false);  // No state follows from an order, so any actor may have any of them.
  options.share_envs = 6;                     // Directions, in orders of two.
  options.directions.set_num_dirs(6);
  options.directions.set_num_envs(1);
  options.directions.set_noise_std(0.5);
  options.directions.set_noise_schedule(v1::SCHEDULE_LINEAR);
  return options;
}

template <typename Value>
SampleField MakeField(const std::string& name, v1::DataType dtype, const std::vector<Value>& values) {
  const char* const data = reinterpret_cast<const char*>(values.data());
  return {name, dtype, v1::COMPRESSION_UNSPECIFIED, std::string(data, values.size() * sizeof(Value)), {}};
}

class Directions : public CollectorTest {
 protected:
  Directions() : CollectorTest(DirectionOptions()) {}
  void Join(const ConnectionId& actor) {
    v1::Hello hello = MakeHello(actor, 1);
    hello.mutable_env_spec()->set_relocatable(false);
    ASSERT_TRUE(collector_.Open(hello).ok());
  }
  // Direction d has the returns d and -d and, in `steps` in all, its share.
  SampleFragment Answer(const ConnectionId& actor, const v1::Ticket& ticket, const std::vector<int64_t>& steps) {
    SampleFragment fragment;
    v1::FragmentHeader& header = fragment.header;
    auto& [sequence, collected] = works_[actor];
    const auto sum = static_cast<uint64_t>(std::accumulate(steps.begin(), steps.end(), int64_t{0}));
    collected += sum;
    header.set_sequence(++sequence);
    header.set_env_steps_collected(collected);
    header.set_ticket_id(ticket.id());
    header.set_first_env(ticket.first_env());
    header.set_policy_version(ticket.policy_version());
    header.set_group_envs(2);
    header.set_steps(1);
    header.set_env_steps(sum);
    const double d = ticket.first_env();
    constexpr v1::DataType kDouble = v1::DATA_TYPE_FLOAT64, kInt = v1::DATA_TYPE_INT64;
    fragment.fields = {MakeField<double>("return_plus", kDouble, {d, d + 1}),
                       MakeField<double>("return_minus", kDouble, {-d, NAN}),
                       MakeField<int64_t>("steps_plus", kInt, {steps[0], steps[1]}),
                       MakeField<int64_t>("steps_minus", kInt, {steps[2], steps[3]}),
                       MakeField<int64_t>("obs_sum", kInt, {1, 0, 2, 0, 3, 0}),
                       MakeField<int64_t>("obs_square_sum", kInt, {4, 0, 5, 0, 6, 0})};
    return fragment;
  }
};

TEST_F(Directions, ATicketNamesDirectionsAndTheWork) {
  Join(kAda);
  Join(kBob);
  collector_.OpenIteration(4, {.directions = {.noise_std = 0.375}});
  const auto grants = collector_.TakeGrants();
  ASSERT_THAT(grants, SizeIs(2));
  const v1::Ticket& ticket = grants[1].second;
  EXPECT_EQ(ticket.policy_version(), 4u);
  EXPECT_EQ(ticket.first_env(), 2u);
  EXPECT_EQ(ticket.group_envs(), 2u);
  EXPECT_FALSE(ticket.has_env_state());
  EXPECT_EQ(ticket.episodes_since(), 0u);
  EXPECT_DOUBLE_EQ(ticket.directions().noise_std(), 0.375);
  EXPECT_EQ(ticket.directions().episodes(), 1u);
  EXPECT_EQ(ticket.directions().episode_steps(), kMostSteps);
}

TEST_F(Directions, EpisodesOfAnIterationMayBeShorter) {
  Join(kAda);
  collector_.OpenIteration(4, {.directions = {.noise_std = 0.1, .episode_length = 7}});
  const auto grants = collector_.TakeGrants();
  ASSERT_FALSE(grants.empty());
  EXPECT_EQ(grants[0].second.directions().episode_steps(), 7u);
}

TEST_F(Directions, AnswersAreInTheOrderOfDirectionsAndEveryStepCounts) {
  Join(kAda);
  Join(kBob);
  uint64_t steps = 0;
  for (const uint64_t version : {1u, 2u}) {
    collector_.OpenIteration(version);
    std::vector<std::pair<ConnectionId, v1::Ticket>> held;
    for (int64_t length = 1; length <= 3; ++length) {
      for (auto& grant : collector_.TakeGrants()) held.push_back(std::move(grant));
      const auto [actor, ticket] = held.back();  // The last one first.
      held.pop_back();
      EXPECT_EQ(Deliver(actor, Answer(actor, ticket, {length, 1, 1, 1})), v1::RECEIPT_RESULT_ACCEPTED);
      steps += static_cast<uint64_t>(length) + 3;
    }
    const auto iteration = Take();
    ASSERT_TRUE(iteration);
    EXPECT_THAT(iteration->batch->values<double>("return_plus"), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(iteration->batch->values<int64_t>("obs_sum"), SizeIs(3 * 6));
    EXPECT_FALSE(iteration->state.has_value());
    const DirectionEpisodes episodes = ReadDirectionEpisodes(*iteration->batch, 1);
    EXPECT_THAT(episodes.episode_return, ElementsAre(0, 1, 2, 3, 4, 5, 0, -2, -4));
    EXPECT_EQ(collector_.account().pending(), episodes.env_steps);
    collector_.Trained(episodes.env_steps);
    ExpectBalance();
    EXPECT_EQ(collector_.account().trained(), steps);
    EXPECT_EQ(collector_.account().pending(), 0u);
    EXPECT_EQ(collector_.queued_fragments(), 0u);
  }
}

TEST_F(Directions, ThoseOfADeadActorGoToAnother) {
  Join(kAda);
  collector_.OpenIteration(1);
  const auto lost = collector_.TakeGrants();
  ASSERT_THAT(lost, SizeIs(1));
  collector_.Close(kAda, 7);  // It says that it has played seven steps that have not arrived.
  Join(kBob);
  const auto grants = collector_.TakeGrants();
  ASSERT_THAT(grants, SizeIs(1));
  EXPECT_EQ(grants[0].second.first_env(), lost[0].second.first_env());
  EXPECT_EQ(grants[0].second.directions().SerializeAsString(), lost[0].second.directions().SerializeAsString());
  EXPECT_EQ(Deliver(kBob, Answer(kBob, grants[0].second, {1, 2, 3, 4})), v1::RECEIPT_RESULT_ACCEPTED);
  EXPECT_EQ(collector_.account().lost(), 7u);
  EXPECT_EQ(collector_.account().collected(), 17u);
}

// Each answer used 4 steps of its grant of 40: the rest is not left for claims.
TEST_F(Directions, WhatAGrantDoesNotUseCannotBeClaimedLater) {
  Join(kAda);
  collector_.OpenIteration(1);
  for (int i = 0; i < 3; ++i) {
    const auto grants = collector_.TakeGrants();
    ASSERT_THAT(grants, SizeIs(1));
    Deliver(kAda, Answer(kAda, grants[0].second, {1, 1, 1, 1}));
  }
  collector_.Close(kAda, 1000000);
  EXPECT_EQ(collector_.account().collected(), 12u);
  EXPECT_EQ(collector_.account().lost(), 0u);
}

// Nothing of a rogue answer reaches the statistics of observations.
TEST_F(Directions, RefusesSumsAndReturnsThatNoEpisodeHas) {
  Join(kAda);
  collector_.OpenIteration(1);
  const auto answered = [&](const std::string& field, const std::string& data) {
    const auto grants = collector_.TakeGrants();
    SampleFragment fragment = Answer(kAda, grants.at(0).second, {1, 1, 1, 1});
    for (SampleField& one : fragment.fields) {
      if (one.name == field) one.data = data;
    }
    const v1::Receipt receipt = collector_.Receive(kAda, ReceivedFragment(fragment).frame(), 1);
    EXPECT_EQ(receipt.result(), v1::RECEIPT_RESULT_REJECTED) << field;
    ExpectBalance();
    return receipt.message();
  };
  const auto bytes = [](const auto& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  using Ints = std::vector<int64_t>;
  const std::string what = "element 1 of the observations: no 2 numbers have these sums";
  EXPECT_THAT(answered("obs_sum", bytes(Ints{1, 0, 0, 1000, 3, 0})), HasSubstr(what));
  EXPECT_THAT(answered("obs_square_sum", bytes(Ints{4, 0, -5, -1, 6, 0})), HasSubstr(what));
  EXPECT_THAT(answered("obs_square_sum", bytes(Ints{4, 0, 5, int64_t{1} << 50, 6, 0})), HasSubstr(what));
  EXPECT_THAT(answered("return_plus", bytes(std::vector<double>{0, -1e9})),
              HasSubstr("fields.return_plus: element 1 is -1e+09, want at most 1e+06 in magnitude, or no number"));
}

TEST_F(Directions, RefusesStepsThatNoEpisodeHas) {
  Join(kAda);
  collector_.OpenIteration(1);
  const auto refused = [&](const std::vector<int64_t>& steps, uint64_t claimed) {
    const auto grants = collector_.TakeGrants();
    SampleFragment fragment = Answer(kAda, grants.at(0).second, steps);
    fragment.header.set_env_steps(claimed);
    const v1::Receipt receipt = collector_.Receive(kAda, ReceivedFragment(fragment).frame(), 1);
    EXPECT_EQ(receipt.result(), v1::RECEIPT_RESULT_REJECTED);
    ExpectBalance();
    return receipt.message();
  };
  EXPECT_THAT(refused({1, 11, 1, 1}, 14), HasSubstr("fields.steps_plus: element 1 is 11, want 1 to 10"));
  EXPECT_THAT(refused({1, 1, 0, 1}, 3), HasSubstr("fields.steps_minus: element 0 is 0, want 1 to 10"));
  EXPECT_THAT(refused({1, 1, 1, 1}, 5), HasSubstr("env_steps: got 5, the directions have 4"));
  EXPECT_EQ(collector_.account().trained(), 0u);
}

}  // namespace
}  // namespace skein
