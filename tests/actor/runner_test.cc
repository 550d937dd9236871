// SPDX-License-Identifier: Apache-2.0
#include "actor/runner.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "absl/time/clock.h"
#include "base/number/bfloat16.h"
#include "base/process/fault_hook.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actor/working_runner.h"
#include "tests/learner/sample_fragment.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

// What a policy without memory makes of these observations.
std::vector<float> Head(const Policy& policy, const std::vector<float>& obs) {
  const int64_t rows = static_cast<int64_t>(obs.size()) / policy.spec().obs_size;
  std::vector<float> head(static_cast<size_t>(rows * policy.spec().head_size()));
  policy.Act(obs.data(), nullptr, rows, head.data(), nullptr);
  return head;
}

// log N(action; mean, exp(log_std)) of each row: sum_d -((a_d - m_d) / s_d)^2 / 2 - log s_d - log(2 pi) / 2.
std::vector<double> GaussianLogProbs(const Policy& policy, const std::vector<float>& obs,
                                     const std::vector<float>& action) {
  const std::vector<float> mean = Head(policy, obs);
  const size_t D = policy.log_std().size();
  std::vector<double> log_prob(action.size() / D);
  for (size_t i = 0; i < action.size(); ++i) {
    const double log_std = policy.log_std()[i % D], z = (action[i] - mean[i]) / std::exp(log_std);
    log_prob[i / D] -= z * z / 2 + log_std + std::log(2 * M_PI) / 2;
  }
  return log_prob;
}

std::vector<float> Vector(absl::Span<const float> values) { return {values.begin(), values.end()}; }

// The largest difference.
template <typename A, typename B>
double Distance(const std::vector<A>& a, const std::vector<B>& b) {
  EXPECT_EQ(a.size(), b.size());
  double distance = 0;
  for (size_t i = 0; i < a.size(); ++i) distance = std::max(distance, std::abs(double{a[i]} - double{b[i]}));
  return distance;
}

TEST(Runner, WhatItMakesIsAdmitted) {
  for (const char* env_id : {"CartPole-v1", "Pendulum-v1"}) {
    WorkingRunner runner(env_id, 7);  // Truncated often.
    runner.PutPolicy();
    const Fragment fragment = runner.Serve(runner.MakeTicket(3, 20));
    const FragmentValues checked(fragment, runner.Shape(20));
    const auto truncated = checked.flags("truncated");
    EXPECT_EQ(std::count(truncated.begin(), truncated.end(), 1), 2 * kE);  // 20 steps of episodes of 7.
    EXPECT_EQ(fragment.header.policy_version(), 4u);
    EXPECT_EQ(fragment.header.first_env(), 3u);
    EXPECT_EQ(fragment.header.env_steps_collected(), 20 * kE);
    EXPECT_EQ(runner.End(), absl::OkStatus());
  }
}

TEST(Runner, TheSameTicketGivesTheSameBytes) {
  for (const char* env_id : {"CartPole-v1", "Pendulum-v1"}) {
    WorkingRunner runner(env_id), other(env_id);
    runner.PutPolicy();
    other.PutPolicy();
    const std::string once = AllFields(runner.Serve(runner.MakeTicket(6, 60)));
    runner.Serve(runner.MakeTicket(0, 5));  // Something else in between leaves no trace.
    EXPECT_EQ(AllFields(runner.Serve(runner.MakeTicket(6, 60))), once);
    EXPECT_EQ(AllFields(other.Serve(other.MakeTicket(6, 60))), once);
    EXPECT_NE(AllFields(runner.Serve(runner.MakeTicket(3, 60))), once);
  }
}

TEST(Runner, TicketsThatContinueOneAnotherGiveTheFragmentInOnePiece) {
  for (const char* env_id : {"CartPole-v1", "Pendulum-v1"}) {
    WorkingRunner whole_runner(env_id, 25), first_runner(env_id, 25), second_runner(env_id, 25);
    for (WorkingRunner* runner : {&whole_runner, &first_runner, &second_runner}) runner->PutPolicy();
    const Fragment whole = whole_runner.Serve(whole_runner.MakeTicket(3, 40));
    const Fragment first = first_runner.Serve(first_runner.MakeTicket(3, 15));
    v1::Ticket rest = second_runner.MakeTicket(3, 25);  // Another actor goes on.
    Continue(first, &rest);
    const Fragment second = second_runner.Serve(rest);

    for (const char* name :
         {"action", "log_prob", "reward", "terminated", "truncated", "final_obs", "episode_return", "episode_length"}) {
      EXPECT_EQ(FieldBytes(first, name) + FieldBytes(second, name), FieldBytes(whole, name)) << name;
    }
    EXPECT_GT(whole.header.episodes(), 0);
    EXPECT_EQ(FieldBytes(second, "env_state"), FieldBytes(whole, "env_state"));
    // The last row of the first fragment is the first row of the second.
    const std::string before = FieldBytes(first, "obs");
    const size_t row = before.size() / 16;
    EXPECT_EQ(before.substr(0, 15 * row) + FieldBytes(second, "obs"), FieldBytes(whole, "obs"));
    EXPECT_EQ(before.substr(15 * row), FieldBytes(second, "obs").substr(0, row));
  }
}

TEST(Runner, LogProbsAreThoseOfThePolicyAtWhatItSaw) {
  WorkingRunner discrete("CartPole-v1"), continuous("Pendulum-v1");
  for (WorkingRunner* runner : {&discrete, &continuous}) {
    runner->PutPolicy();
    const Fragment fragment = runner->Serve(runner->MakeTicket(0, 10));
    const auto policy = runner->Snapshot(4);
    std::vector<float> obs = Values<float>(fragment, "obs");
    obs.resize(obs.size() / 11 * 10);  // Without the row after the last step.
    std::vector<double> want;
    if (runner == &discrete) {
      const std::vector<float> logits = Head(*policy, obs);
      const std::vector<int64_t> choice = Values<int64_t>(fragment, "action");
      for (size_t i = 0; i < choice.size(); ++i) {
        const float* const row = logits.data() + 2 * i;
        want.push_back(row[choice[i]] - std::log(std::exp(double{row[0]}) + std::exp(double{row[1]})));
      }
    } else {
      want = GaussianLogProbs(*policy, obs, Values<float>(fragment, "action"));
    }
    EXPECT_LT(Distance(Values<float>(fragment, "log_prob"), want), 1e-4);
  }
}

// The ratio that PPO begins an iteration with, of probabilities at the observations that arrive: 1. With observations
// rounded on the way only, it would not be.
TEST(Runner, RoundedObservationsAreWhatThePolicyActedOn) {
  v1::TransportConfig transport;
  transport.set_trajectory_precision(v1::PRECISION_BF16);
  transport.set_trajectory_compression(v1::COMPRESSION_ZSTD);
  constexpr int64_t T = 200;
  WorkingRunner runner("Pendulum-v1", 0, transport), exact("Pendulum-v1");
  // How far the logarithm of the ratio is from 0 at most.
  const auto distance = [](WorkingRunner* made_by, const std::vector<float>& obs, const FragmentValues& values) {
    return Distance(GaussianLogProbs(*made_by->Snapshot(4), obs, Vector(values.floats("action"))),
                    Vector(values.floats("log_prob")));
  };
  const auto of_steps = [](std::vector<float> obs) {
    obs.resize(obs.size() / (T + 1) * T);  // Without the row after the last step.
    return obs;
  };
  runner.PutPolicy();
  FragmentShape shape = runner.Shape(T);
  shape.obs_dtype = v1::DATA_TYPE_BFLOAT16;
  const FragmentValues values(runner.Serve(runner.MakeTicket(0, T)), shape);
  EXPECT_GT(values.saved_bytes(), 0u);
  const std::vector<float> obs = of_steps(Vector(values.floats("obs")));
  EXPECT_LT(distance(&runner, obs, values), 1e-4);

  exact.PutPolicy();
  const FragmentValues plain(exact.Serve(exact.MakeTicket(0, T)), exact.Shape(T));
  const std::vector<float> raw = of_steps(Vector(plain.floats("obs")));
  std::vector<float> rounded = raw;
  RoundToBfloat16(rounded.data(), rounded.size());
  EXPECT_LT(distance(&exact, raw, plain), 1e-4);
  EXPECT_GT(distance(&exact, rounded, plain), 1e-3);
  // The episodes begin alike, and are others for the first rounded action.
  EXPECT_TRUE(std::equal(obs.begin(), obs.begin() + 3 * kE, rounded.begin()));
}

TEST(Runner, APackedFragmentIsTheSameEachTimeAndInPieces) {
  v1::TransportConfig transport;
  transport.set_trajectory_precision(v1::PRECISION_BF16);
  transport.set_trajectory_compression(v1::COMPRESSION_ZSTD);
  WorkingRunner whole("CartPole-v1", 25, transport), first("CartPole-v1", 25, transport);
  WorkingRunner second("CartPole-v1", 25, transport);
  for (WorkingRunner* runner : {&whole, &first, &second}) runner->PutPolicy();
  const Fragment all = whole.Serve(whole.MakeTicket(3, 80));
  EXPECT_EQ(AllFields(whole.Serve(whole.MakeTicket(3, 80))), AllFields(all));

  const auto values = [](WorkingRunner& runner, const Fragment& fragment) {
    FragmentShape shape = runner.Shape(fragment.header.steps());
    shape.obs_dtype = v1::DATA_TYPE_BFLOAT16;
    return std::make_unique<FragmentValues>(fragment, shape);
  };
  const auto begun = values(first, first.Serve(first.MakeTicket(3, 30)));
  v1::Ticket rest = second.MakeTicket(3, 50);
  const auto state = begun->values<double>("env_state");
  rest.mutable_env_state()->set_dtype(v1::DATA_TYPE_FLOAT64);
  rest.mutable_env_state()->set_data(state.data(), state.size() * sizeof(double));
  const auto ended = values(second, second.Serve(rest)), want = values(whole, all);
  // The row where they meet is in both.
  std::vector<float> obs = Vector(begun->floats("obs"));
  const std::vector<float> rest_of_obs = Vector(ended->floats("obs"));
  const auto row = static_cast<std::ptrdiff_t>(obs.size() / 31);
  EXPECT_TRUE(std::equal(obs.end() - row, obs.end(), rest_of_obs.begin()));
  obs.erase(obs.end() - row, obs.end());
  obs.insert(obs.end(), rest_of_obs.begin(), rest_of_obs.end());
  EXPECT_EQ(obs, Vector(want->floats("obs")));
  std::vector<float> log_prob = Vector(begun->floats("log_prob"));
  const std::vector<float> rest_of_log_prob = Vector(ended->floats("log_prob"));
  log_prob.insert(log_prob.end(), rest_of_log_prob.begin(), rest_of_log_prob.end());
  EXPECT_EQ(log_prob, Vector(want->floats("log_prob")));
}

TEST(Runner, WaitsForThePolicyOfItsTicket) {
  WorkingRunner runner("CartPole-v1");
  runner.PutPolicy(3);
  runner.outbox().AddTicket(1, runner.MakeTicket(0, 4));
  runner.PutPolicy(4);
  EXPECT_EQ(runner.outbox().NextToSend(1)->header.policy_version(), 4u);
  v1::Ticket newest = runner.MakeTicket(0, 4);
  newest.set_policy_version(0);
  runner.PutPolicy(5);
  EXPECT_EQ(runner.Serve(newest).header.policy_version(), 5u);
}

// The learner's update, and what moves messages, go first on a core that they share with a runner.
TEST(Runner, IsNicerThanOtherThreads) {
  if (getpriority(PRIO_PROCESS, 0) == 19) GTEST_SKIP() << "nothing is nicer than this test";
  const auto nicer = [] {
    const int own = getpriority(PRIO_PROCESS, 0);
    const std::filesystem::directory_iterator threads("/proc/self/task");
    return std::count_if(begin(threads), end(threads), [own](const std::filesystem::directory_entry& thread) {
      return getpriority(PRIO_PROCESS, std::stoi(thread.path().filename())) > own;
    });
  };
  WorkingRunner runner("CartPole-v1", 0, {}, 2);
  EXPECT_TRUE(WaitUntil([&] { return nicer() == 2; }));
}

TEST(Runner, GivesUpATicketWhosePolicyIsGoneAndGoesOn) {
  WorkingRunner runner("CartPole-v1");
  for (uint64_t version : {4, 5}) runner.PutPolicy(version);
  v1::Ticket gone = runner.MakeTicket(0, 4);
  gone.set_policy_version(2);
  runner.outbox().AddTicket(1, gone);
  EXPECT_EQ(runner.Serve(runner.MakeTicket(0, 4)).header.sequence(), 1u);
  gone.set_policy_version(5);
  EXPECT_EQ(runner.Serve(gone).header.sequence(), 2u);  // It may come again.
}

TEST(Runner, AMalformedTicketEndsIt) {
  const auto run = [](const std::function<void(v1::Ticket*)>& spoil) {
    WorkingRunner runner("CartPole-v1");
    runner.PutPolicy();
    v1::Ticket ticket = runner.MakeTicket(0, 4);
    spoil(&ticket);
    runner.outbox().AddTicket(1, ticket);
    return runner.Join();
  };
  const auto expect = [&](const std::function<void(v1::Ticket*)>& spoil, const std::string& message) {
    const absl::Status status = run(spoil);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  expect([](v1::Ticket* ticket) { ticket->set_group_envs(2); }, "ticket 1: has 2 environments x 4 steps, want 3");
  expect([](v1::Ticket* ticket) { ticket->set_steps(0); }, "0 steps");
  const auto set_state = [](v1::Ticket* ticket, v1::DataType dtype, size_t bytes, char fill) {
    ticket->mutable_env_state()->set_dtype(dtype);
    ticket->mutable_env_state()->set_data(std::string(bytes, fill));
  };
  // CartPole's state is four numbers, and the bookkeeping is three: 7 x 8 bytes for each of three environments.
  expect([&](v1::Ticket* ticket) { set_state(ticket, v1::DATA_TYPE_FLOAT64, 160, 0); }, "env_state has 160 bytes");
  expect([&](v1::Ticket* ticket) { set_state(ticket, v1::DATA_TYPE_FLOAT32, 168, 0); }, "want 168 of float64");
  expect([&](v1::Ticket* ticket) { set_state(ticket, v1::DATA_TYPE_FLOAT64, 168, '\xff'); }, "");  // All NaN.
}

TEST(Runner, WithoutATicketItHelpsThoseThatHaveOne) {
  // Steps of Latency-v0 take 10 ms: the short ticket's runner is soon out of work.
  WorkingRunner alone("Latency-v0"), two("Latency-v0", 0, {}, /*runners=*/2);
  for (WorkingRunner* working : {&alone, &two}) working->PutPolicy();
  const v1::Ticket brief = two.MakeTicket(0, 1), lengthy = two.MakeTicket(kE, 20);
  two.outbox().AddTicket(1, brief);
  two.outbox().AddTicket(1, lengthy);
  EXPECT_EQ(two.outbox().NextToSend(1)->header.ticket_id(), brief.id());
  const Fragment fragment = *two.outbox().NextToSend(1);
  ASSERT_EQ(fragment.header.ticket_id(), lengthy.id());
  EXPECT_EQ(AllFields(fragment), AllFields(alone.Serve(lengthy)));

  // A fragment begins by a call into each environment, and a step is another.
  const auto entries = [&two](int i) { return two.runner(i).activity().Read().entries; };
  EXPECT_EQ(entries(0) + entries(1), kE * (2 + 1 + 20));
  EXPECT_GT(std::min(entries(0), entries(1)), kE * 2) << "nobody helped";
  // What was done by two threads is work of both.
  EXPECT_GE(fragment.header.stage_seconds().env_step(), 20 * kE * 0.010);
}

TEST(Runner, SaysHowLongItWaitedForItsTicketAndItsPolicy) {
  WorkingRunner working("CartPole-v1");
  working.PutPolicy();
  working.Serve(working.MakeTicket(0, 1));
  absl::SleepFor(absl::Milliseconds(300));
  v1::Ticket ticket = working.MakeTicket(0, 8);
  ticket.set_policy_version(5);
  working.outbox().AddTicket(1, ticket);
  absl::SleepFor(absl::Milliseconds(300));
  working.PutPolicy(5);
  // More than either alone.
  EXPECT_GT(working.outbox().NextToSend(1)->header.stage_seconds().wait(), 0.35);
}

TEST(Runner, StopsInTheMiddleOfAFragment) {
  WorkingRunner runner("CartPole-v1");
  runner.PutPolicy();
  runner.outbox().AddTicket(1, runner.MakeTicket(0, 10'000'000 / 100));
  EXPECT_EQ(runner.End(), absl::OkStatus());
  EXPECT_EQ(runner.outbox().unreceipted(), 0u);
}

// SKEIN_FAULTS as long as it lives.
class Faults {
 public:
  explicit Faults(const std::string& spec) { internal::fault_plan = FaultPlan::Parse(spec).value().release(); }
  ~Faults() {
    delete internal::fault_plan;
    internal::fault_plan = nullptr;
  }
};

TEST(Runner, AFailureOfAnEnvironmentLeavesNoTrace) {
  std::string undisturbed;
  {
    WorkingRunner runner("Pendulum-v1", 7);
    runner.PutPolicy();
    undisturbed = AllFields(runner.Serve(runner.MakeTicket(3, 20)));
  }
  // 3 environments x 20 steps = 60 passages without a fault.
  for (const char* spec : {"env:throw@at=31", "env:nan@at=31", "env:shape@at=1;env:throw@at=60"}) {
    const Faults faults(spec);
    WorkingRunner runner("Pendulum-v1", 7);
    runner.PutPolicy();
    const Fragment fragment = runner.Serve(runner.MakeTicket(3, 20));
    EXPECT_EQ(AllFields(fragment), undisturbed) << spec;
    EXPECT_EQ(fragment.header.env_steps_collected(), 60u) << spec;
    EXPECT_EQ(fragment.header.restarted_episodes(), 0u) << spec;
    EXPECT_EQ(runner.End(), absl::OkStatus());
  }
}

TEST(Runner, SaysHowManyEpisodesAFailureRestartsWhereEnvironmentsCannotBeMoved) {
  // 60 passages a ticket: the first one fails twice, and the second one not at all.
  const Faults faults("env:throw@at=31;env:nan@at=40");
  WorkingRunner runner("StickyCartPole-v0");
  runner.PutPolicy();
  v1::Ticket first = runner.MakeTicket(3, 20);
  first.set_episodes_since(first.id());
  EXPECT_EQ(runner.Serve(first).header.restarted_episodes(), 2 * kE);
  v1::Ticket second = runner.MakeTicket(3, 20);
  second.set_episodes_since(first.id());
  EXPECT_EQ(runner.Serve(second).header.restarted_episodes(), 0u);
  EXPECT_EQ(runner.End(), absl::OkStatus());
}

// The second phase pays another reward; nothing else of its environments differs.
TEST(Runner, StepsEnvironmentsOfTheTicketsPhase) {
  v1::RunConfig config;
  v1::PhaseConfig* const phase = config.add_phases();
  phase->set_until_steps(100);
  phase->mutable_set()->mutable_env()->mutable_mujoco()->set_healthy_reward(1.6);
  WorkingRunner runner("QuadrupedStand-v0", 0, {}, 1, {}, config), other("QuadrupedStand-v0", 0, {}, 1, {}, config);
  runner.PutPolicy();
  other.PutPolicy();
  const auto rewards = [](const Fragment& fragment) {
    const std::string bytes = FieldBytes(fragment, "reward");
    std::vector<float> values(bytes.size() / sizeof(float));
    std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(values.data()));
    return values;
  };
  v1::Ticket first = runner.MakeTicket(0, 10), own = runner.MakeTicket(0, 10);
  own.set_phase(1);
  const Fragment with = runner.Serve(first), without = runner.Serve(own);
  const std::vector<float> more = rewards(with), less = rewards(without);
  ASSERT_EQ(more.size(), 10 * kE);
  for (size_t i = 0; i < more.size(); ++i) EXPECT_NEAR(more[i] - less[i], 1, 1e-5) << i;
  EXPECT_EQ(FieldBytes(with, "obs"), FieldBytes(without, "obs"));
  // In the middle of episodes, by an actor that has not seen the first phase.
  v1::Ticket rest = other.MakeTicket(0, 10), back = runner.MakeTicket(0, 10);
  Continue(with, &rest);
  Continue(with, &back);
  rest.set_phase(1);
  const std::vector<float> after = rewards(other.Serve(rest)), as_before = rewards(runner.Serve(back));
  for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(as_before[i] - after[i], 1, 1e-5) << i;
  EXPECT_EQ(runner.End(), absl::OkStatus());
  EXPECT_EQ(other.End(), absl::OkStatus());
}

TEST(Runner, SendsWhatTheAlgorithmReads) {
  for (const char* env_id : {"CartPole-v1", "Pendulum-v1"}) {
    v1::RunConfig reinforce;
    reinforce.mutable_reinforce();
    WorkingRunner with(env_id), without(env_id, 0, {}, 1, {}, reinforce);
    with.PutPolicy();
    without.PutPolicy();
    const Fragment of_ppo = with.Serve(with.MakeTicket(3, 20));
    const Fragment of_reinforce = without.Serve(without.MakeTicket(3, 20));
    EXPECT_EQ(FieldBytes(of_ppo, "log_prob").size(), 20 * kE * sizeof(float));
    EXPECT_EQ(of_reinforce.header.fields_size(), of_ppo.header.fields_size() - 1);
    for (const v1::FieldHead& field : of_reinforce.header.fields()) {
      EXPECT_NE(field.name(), "log_prob");
      EXPECT_EQ(FieldBytes(of_reinforce, field.name()), FieldBytes(of_ppo, field.name())) << field.name();
    }
    EXPECT_EQ(with.End(), absl::OkStatus());
    EXPECT_EQ(without.End(), absl::OkStatus());
  }
}

TEST(Runner, EndsWhenEnvironmentsFailTooOften) {
  const Faults faults("env:throw");
  WorkingRunner runner("CartPole-v1");
  runner.PutPolicy();
  runner.outbox().AddTicket(1, runner.MakeTicket(3, 20));
  const absl::Status status = runner.Join();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("environment 3 of CartPole-v1, episode 0, step 1: threw"));
}

TEST(Runner, RefusesAnEnvironmentNobodyKnows) {
  v1::RunConfig config;
  ApplyDefaults(&config);
  config.mutable_env()->set_id("Nonesuch-v0");
  EnvRebuilds rebuilds(
      1, [&config](uint32_t) { return MakeRunnerEnv(config); }, nullptr);
  EXPECT_FALSE(Runner::Make(config, &rebuilds, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr).ok());
}

}  // namespace
}  // namespace skein
