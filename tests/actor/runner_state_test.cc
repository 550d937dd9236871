// SPDX-License-Identifier: Apache-2.0
// What a runner takes over from one ticket to the next: a policy's memory, and environments that cannot be moved.
#include <string>
#include <vector>

#include "actor/held_envs.h"
#include "base/process/fault_hook.h"
#include "gmock/gmock.h"
#include "tests/actor/working_runner.h"

namespace skein {
namespace {

using testing::Each;
using testing::HasSubstr;

v1::ModelConfig Model(v1::Memory memory) {
  v1::ModelConfig model;
  model.set_memory(memory);
  model.set_memory_size(20);
  return model;
}

std::string Trajectory(const Fragment& fragment) {
  std::string bytes;
  for (const char* name : {"action", "log_prob", "reward", "terminated", "truncated", "episode_return"}) {
    bytes += FieldBytes(fragment, name);
  }
  return bytes;
}

// `steps` steps in fragments of `chunk`, each served by another actor than the one before. The last fragment is in
// *last.
std::vector<std::string> InPieces(const std::vector<WorkingRunner*>& actors, uint32_t steps, uint32_t chunk,
                                  Fragment* last) {
  std::vector<std::string> fields(6);
  for (uint32_t done = 0, i = 0; done < steps; done += chunk, ++i) {
    WorkingRunner& actor = *actors[i % actors.size()];
    v1::Ticket ticket = actor.MakeTicket(3, std::min(chunk, steps - done));
    if (done > 0) Continue(*last, &ticket);
    *last = actor.Serve(ticket);
    int field = 0;
    for (const char* name : {"action", "log_prob", "reward", "terminated", "truncated", "episode_return"}) {
      fields[field++] += FieldBytes(*last, name);
    }
  }
  return fields;
}

TEST(RunnerMemory, APolicysStateTravelsInTickets) {
  for (const v1::Memory memory : {v1::MEMORY_GRU, v1::MEMORY_LSTM}) {
    for (const char* env_id : {"CartPole-v1", "Pendulum-v1"}) {  // Episodes of 25 steps at most end within.
      WorkingRunner ada(env_id, 25, {}, 1, Model(memory)), eve(env_id, 25, {}, 2, Model(memory));
      for (WorkingRunner* actor : {&ada, &eve}) actor->PutPolicy();
      Fragment whole, last;
      const std::vector<std::string> want = InPieces({&ada}, 96, 96, &whole);
      EXPECT_EQ(FieldBytes(whole, "policy_state").size(), (memory == v1::MEMORY_GRU ? 1 : 2) * 20 * sizeof(float) * kE);
      for (const uint32_t chunk : {1u, 7u, 32u}) {
        EXPECT_EQ(InPieces({&ada, &eve}, 96, chunk, &last), want) << env_id << ", fragments of " << chunk;
        EXPECT_EQ(FieldBytes(last, "policy_state"), FieldBytes(whole, "policy_state"));
        EXPECT_EQ(FieldBytes(last, "env_state"), FieldBytes(whole, "env_state"));
      }
    }
  }
}

TEST(RunnerMemory, AnEpisodesEndIsForgotten) {
  WorkingRunner runner("Pendulum-v1", 7, {}, 1, Model(v1::MEMORY_LSTM));
  runner.PutPolicy();
  const Fragment whole = runner.Serve(runner.MakeTicket(3, 14));
  const Fragment first = runner.Serve(runner.MakeTicket(3, 7));
  EXPECT_THAT(Values<float>(first, "policy_state"), Each(0.0f));
  // Without the zeros it is the same: the second episode begins with nothing.
  v1::Ticket rest = runner.MakeTicket(3, 7);
  Continue(first, &rest);
  rest.clear_policy_state();
  const Fragment second = runner.Serve(rest);
  EXPECT_EQ(FieldBytes(first, "action") + FieldBytes(second, "action"), FieldBytes(whole, "action"));
  // And in the middle of one there is something to remember.
  const std::vector<float> state = Values<float>(runner.Serve(runner.MakeTicket(3, 10)), "policy_state");
  EXPECT_NE(*std::max_element(state.begin(), state.end()), 0);
}

TEST(RunnerMemory, AllAgentsOfAnEpisodeThatEndedForget) {
  WorkingRunner runner("UavNavigate-v0", 5, {}, 1, Model(v1::MEMORY_GRU));
  runner.PutPolicy();
  const Fragment ended = runner.Serve(runner.MakeTicket(0, 5));
  const std::vector<float> state = Values<float>(ended, "policy_state");
  EXPECT_EQ(state.size() % (20 * kE), 0u);
  EXPECT_GT(state.size(), 20 * kE);
  EXPECT_THAT(state, Each(0.0f));
  const std::vector<float> going_on = Values<float>(runner.Serve(runner.MakeTicket(0, 4)), "policy_state");
  for (size_t row = 0; row < going_on.size(); row += 20) {
    EXPECT_NE(*std::max_element(going_on.begin() + row, going_on.begin() + row + 20), 0) << "row " << row / 20;
  }
}

TEST(RunnerMemory, AFragmentThatWasBegunAgainLeavesNothingBehind) {
  std::string undisturbed;
  {
    WorkingRunner runner("Pendulum-v1", 7, {}, 1, Model(v1::MEMORY_GRU));
    runner.PutPolicy();
    undisturbed = AllFields(runner.Serve(runner.MakeTicket(3, 20)));
  }
  internal::fault_plan = FaultPlan::Parse("env:throw@at=31").value().release();
  {
    WorkingRunner runner("Pendulum-v1", 7, {}, 1, Model(v1::MEMORY_GRU));
    runner.PutPolicy();
    EXPECT_EQ(AllFields(runner.Serve(runner.MakeTicket(3, 20))), undisturbed);
  }
  delete internal::fault_plan;
  internal::fault_plan = nullptr;
}

TEST(RunnerMemory, AStateOfAnotherSizeEndsIt) {
  for (const v1::Memory memory : {v1::MEMORY_NONE, v1::MEMORY_GRU}) {
    WorkingRunner runner("CartPole-v1", 0, {}, 1, Model(memory));
    runner.PutPolicy();
    v1::Ticket ticket = runner.MakeTicket(0, 4);
    ticket.mutable_policy_state()->set_dtype(v1::DATA_TYPE_FLOAT32);
    ticket.mutable_policy_state()->set_data(std::string(12, 0));
    runner.outbox().AddTicket(1, ticket);
    const absl::Status status = runner.Join();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("ticket 1: policy_state has 12 bytes, want "));
  }
}

// A group of environments that cannot be moved, `ticket`'s episodes having begun with ticket `since`.
v1::Ticket Sticky(v1::Ticket ticket, uint64_t since) {
  ticket.set_episodes_since(since == 0 ? ticket.id() : since);
  return ticket;
}

TEST(RunnerSticky, TheGroupsNextTicketGoesOnWithTheSameEnvironments) {
  WorkingRunner movable("CartPole-v1", 25), sticky("StickyCartPole-v0", 25, {}, 2);
  for (WorkingRunner* runner : {&movable, &sticky}) runner->PutPolicy();
  // The same physics and streams: what it does in one piece is what the other does in pieces, with another group
  // between.
  const Fragment whole = movable.Serve(movable.MakeTicket(3, 60));
  const v1::Ticket begin = Sticky(sticky.MakeTicket(3, 15), 0), other = Sticky(sticky.MakeTicket(6, 15), 0);
  const Fragment first = sticky.Serve(begin);
  EXPECT_EQ(FieldBytes(first, "env_state"), "");
  const std::string others = Trajectory(sticky.Serve(other));
  const Fragment second = sticky.Serve(Sticky(sticky.MakeTicket(3, 45), begin.id()));
  for (const char* name : {"action", "reward", "terminated", "truncated", "episode_return"}) {
    EXPECT_EQ(FieldBytes(first, name) + FieldBytes(second, name), FieldBytes(whole, name)) << name;
  }
  // Its own id: the episodes begin anew.
  EXPECT_EQ(Trajectory(sticky.Serve(Sticky(sticky.MakeTicket(6, 15), 0))), others);
}

TEST(RunnerSticky, AMemoryGoesOnWithThemAndBeginsAnewWithThem) {
  WorkingRunner movable("CartPole-v1", 25, {}, 1, Model(v1::MEMORY_GRU));
  WorkingRunner sticky("StickyCartPole-v0", 25, {}, 1, Model(v1::MEMORY_GRU));
  for (WorkingRunner* runner : {&movable, &sticky}) runner->PutPolicy();
  const Fragment whole = movable.Serve(movable.MakeTicket(3, 40));
  const v1::Ticket begin = Sticky(sticky.MakeTicket(3, 15), 0);
  const Fragment first = sticky.Serve(begin);
  v1::Ticket rest = Sticky(sticky.MakeTicket(3, 25), begin.id());
  Continue(first, &rest);
  rest.clear_env_state();
  EXPECT_EQ(FieldBytes(first, "action") + FieldBytes(sticky.Serve(rest), "action"), FieldBytes(whole, "action"));
  // Environments that are gone: other episodes begin, and the memory begins with zeros.
  v1::Ticket gone = Sticky(sticky.MakeTicket(3, 15), 99);
  Continue(first, &gone);
  gone.clear_env_state();
  const std::string others = Trajectory(sticky.Serve(gone));
  EXPECT_NE(others, Trajectory(first));
  v1::Ticket fresh = Sticky(sticky.MakeTicket(3, 15), 0);
  constexpr uint32_t kAfterFailure = 1 << 19;
  fresh.set_first_episode(static_cast<uint32_t>(kAfterFailure + gone.id() % kAfterFailure));
  EXPECT_EQ(Trajectory(sticky.Serve(fresh)), others);
}

TEST(RunnerSticky, ATicketThatBeginsAnewSaysWithWhichEpisode) {
  WorkingRunner sticky("StickyCartPole-v0", 25);
  sticky.PutPolicy();
  const std::string first = Trajectory(sticky.Serve(Sticky(sticky.MakeTicket(3, 15), 0)));
  v1::Ticket later = Sticky(sticky.MakeTicket(3, 15), 0);
  later.set_first_episode(1 << 20);
  EXPECT_NE(Trajectory(sticky.Serve(later)), first);
}

TEST(HeldEnvs, KeepsTheNewerEpisodesOfAGroup) {
  const auto make = [] { return VectorEnv::Make({.env_id = "StickyCartPole-v0", .size = 2}).value(); };
  HeldEnvs held;
  auto newer = make();
  const VectorEnv* const kept = newer.get();
  EXPECT_EQ(held.Take(1, 0, 5), nullptr);
  held.Put(1, 0, 5, std::move(newer));
  held.Put(1, 0, 3, make());  // By a runner that was slow with a ticket that is void by now.
  EXPECT_EQ(held.Take(1, 0, 3), nullptr);
  EXPECT_EQ(held.Take(1, 0, 5).get(), kept);
}

}  // namespace
}  // namespace skein
