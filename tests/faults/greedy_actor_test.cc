// SPDX-License-Identifier: Apache-2.0
// A member that asks for more than there is, takes all tickets and serves none.
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "env/vector_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/live_members.h"
#include "tests/faults/stranger.h"
#include "tests/learner/sample_fragment.h"

namespace skein {
namespace {

constexpr int kBlocks = 8;  // Of 4 environments.

class FaultRow26Greed : public testing::TestWithParam<std::string> {};

// What serves `ticket`, for all that admission can tell.
std::string Serve(const v1::Ticket& ticket) {
  FragmentShape shape =
      MakeSampleShape({.T = ticket.steps(), .E = ticket.group_envs(), .O = 4, .D = 2, .discrete = true});
  shape.env_state_size = VectorEnv::Make({.env_id = "CartPole-v1"}).value()->state_size();
  SampleFragment fragment = MakeSampleFragment(shape);
  SampleField* state = fragment.Find("env_state");
  state->data.assign(state->data.size(), '\0');
  fragment.header.set_ticket_id(ticket.id());
  fragment.header.set_first_env(ticket.first_env());
  fragment.header.set_policy_version(1);
  fragment.header.set_sequence(1);
  fragment.header.set_env_steps_collected(ticket.steps() * ticket.group_envs());
  return fragment.Bytes();
}

TEST_P(FaultRow26Greed, AnActorThatTakesAllTicketsDoesNotStopTheRun) {
  Cluster cluster({kEndless, "sync.mode=" + GetParam(), "rollout.num_envs=32"});
  cluster.StartCoordinator();
  cluster.StartLearner();
  Stranger greedy(ServingLearner(&cluster), CoordinatorAddress(&cluster));
  v1::CollectRequest hello = greedy.Hello(1);
  hello.mutable_hello()->set_runners(uint32_t{1} << 31);
  hello.mutable_hello()->set_ticket_credits(std::numeric_limits<uint32_t>::max());
  greedy.Open();
  greedy.Send(hello);
  std::vector<v1::Ticket> tickets;
  while (tickets.size() < kBlocks) {
    const auto response = greedy.Read();
    ASSERT_TRUE(response);
    if (response->has_ticket()) tickets.push_back(response->ticket());
  }
  // It has them all, and nobody is known to be faster.
  const auto actor = cluster.StartActor("", {}, 2);
  const auto other = cluster.StartActor("", {}, 2);
  ASSERT_TRUE(cluster.WaitForStatus([](const v1::StatusResponse& status) {
    return status.progress().account().trained() >= 20 * 1024;  // Iterations: every env group was served.
  }));
  // What it says after all comes too late, and the account is whole with it.
  greedy.SendBytes(Serve(tickets[0]));
  std::optional<v1::Receipt> receipt;
  while (!receipt) {
    const auto response = greedy.Read();
    ASSERT_TRUE(response) << greedy.End().error_message();
    if (response->has_receipt()) receipt = response->receipt();
  }
  EXPECT_EQ(receipt->result(), v1::RECEIPT_RESULT_STALE) << receipt->message();
  const uint64_t steps = EnvSteps(cluster);
  EXPECT_TRUE(cluster.WaitForStatus(TrainedAtLeast(steps + 4 * 1024)));
}

INSTANTIATE_TEST_SUITE_P(Modes, FaultRow26Greed, testing::Values("async", "on_policy", "overlapped"),
                         [](const auto& mode) { return mode.param; });

}  // namespace
}  // namespace skein
