// SPDX-License-Identifier: Apache-2.0
#include "actor/runner.h"

#include <sys/resource.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "absl/algorithm/container.h"
#include "absl/time/clock.h"
#include "actor/runner_env.h"
#include "base/config/config.h"
#include "base/process/fault_hook.h"
#include "env/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/collect/admission.h"
#include "learner/network/distribution.h"
#include "policy/policy.h"
#include "tests/learner/sample_batch.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr uint32_t kE = 3;

torch::Tensor Floats(const BatchValues& values, const std::string& field) {
  const absl::Span<const float> floats = values.floats(field);
  return torch::from_blob(const_cast<float*>(floats.data()), {static_cast<int64_t>(floats.size())}).clone();
}

torch::Tensor AsTensor(const v1::Tensor& tensor, torch::Dtype dtype) {
  const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  return torch::from_blob(const_cast<char*>(tensor.data().data()), shape, dtype).clone();
}

// Runners of one actor at work on threads of their own, with policy 4 at hand.
class WorkingRunner {
 public:
  explicit WorkingRunner(const std::string& env_id, uint32_t max_episode_steps = 0,
                         const v1::TransportConfig& transport = {}, int runners = 1)
      : metrics_(&registry_, 1),
        rebuilds_(
            2, [this] { return MakeRunnerEnv(config_); }, &metrics_) {
    *config_.mutable_transport() = transport;
    ApplyDefaults(&config_);
    config_.mutable_env()->set_id(env_id);
    config_.mutable_env()->set_max_episode_steps(max_episode_steps);
    config_.mutable_rollout()->set_envs_per_runner(kE);
    config_.mutable_rollout()->set_num_envs(4 * kE);
    spec_ = MakeEnv(env_id).value()->spec();
    options_ = MakeActorCriticOptions(config_.model(), spec_);
    options_.policy_head_scale = 1;
    outbox_.BeginLife("ada", 1);
    outbox_.BeginEpoch(1, 0);
    policies_.BeginEpoch(1);
    for (int i = 0; i < runners; ++i) {
      runners_.push_back(Runner::Make(config_, &rebuilds_, &outbox_, &policies_, &sharing_, &metrics_, &stop_).value());
    }
    status_.resize(runners);
    for (int i = 0; i < runners; ++i) threads_.emplace_back([this, i] { status_[i] = runners_[i]->Run(); });
  }
  ~WorkingRunner() {
    if (!threads_.empty()) End().IgnoreError();
  }

  void PutPolicy(uint64_t version = 4) { policies_.Put(1, Snapshot(version)); }
  std::shared_ptr<const Policy> Snapshot(uint64_t version) const {
    return std::make_shared<const Policy>(version, std::make_shared<ActorCritic>(options_, 17),
                                          ObsScale::Identity(spec_.obs_size));
  }
  v1::Ticket MakeTicket(uint32_t first_env, uint32_t steps) {
    v1::Ticket ticket;
    ticket.set_id(++tickets_);
    ticket.set_policy_version(4);
    ticket.set_first_env(first_env);
    ticket.set_num_envs(kE);
    ticket.set_steps(steps);
    return ticket;
  }
  // Hands out a ticket and waits for its batch.
  Fragment Serve(v1::Ticket ticket) {
    outbox_.AddTicket(1, ticket);
    const auto batch = outbox_.NextToSend(1);
    EXPECT_EQ(batch->header.ticket_id(), ticket.id());
    return *batch;
  }
  absl::Status End() {
    stop_ = true;
    outbox_.Stop();
    policies_.Stop();
    return Join();
  }
  // What Run returns by itself.
  absl::Status Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    for (const absl::Status& status : status_) {
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }
  FragmentShape Shape(uint32_t steps) const {
    FragmentShape shape;
    shape.steps = steps;
    shape.num_envs = kE;
    shape.env_state_size = VectorEnv::Make({.env_id = spec_.id, .num_envs = 1}).value()->state_size();
    shape.spec.set_obs_size(spec_.obs_size);
    shape.spec.set_action_size(spec_.action_size);
    shape.spec.set_discrete(spec_.discrete);
    shape.spec.set_num_agents(spec_.num_agents);
    return shape;
  }

  Outbox& outbox() { return outbox_; }
  ActorMetrics& metrics() { return metrics_; }
  const Runner& runner(int i) const { return *runners_.at(i); }
  std::atomic<bool>& stop() { return stop_; }

 private:
  v1::RunConfig config_;
  EnvSpec spec_;
  ActorCriticOptions options_;
  prometheus::Registry registry_;
  ActorMetrics metrics_;
  EnvRebuilds rebuilds_;
  Outbox outbox_;
  PolicyStore policies_;
  StepSharing sharing_{[this] { outbox_.Nudge(); }};
  std::atomic<bool> stop_{false};
  uint64_t tickets_ = 0;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<absl::Status> status_;
  std::vector<std::thread> threads_;
};

TEST(Runner, WhatItMakesIsAdmitted) {
  for (const char* env_id : {"CartPole-v1", "Pendulum-v1"}) {
    WorkingRunner runner(env_id, 7);  // Truncated often.
    runner.PutPolicy();
    const Fragment batch = runner.Serve(runner.MakeTicket(3, 20));
    const BatchValues checked(batch, runner.Shape(20));
    EXPECT_EQ(absl::c_count(checked.flags("truncated"), 1), 2 * kE);  // 20 steps of episodes of 7.
    EXPECT_EQ(batch.header.policy_version(), 4u);
    EXPECT_EQ(batch.header.first_env(), 3u);
    EXPECT_EQ(batch.header.env_steps_collected(), 20 * kE);
    EXPECT_EQ(runner.End(), absl::OkStatus());
  }
}

TEST(Runner, TheSameTicketGivesTheSameBytes) {
  for (const char* env_id : {"CartPole-v1", "Pendulum-v1"}) {
    WorkingRunner runner(env_id), other(env_id);
    runner.PutPolicy();
    other.PutPolicy();
    const std::string once = *runner.Serve(runner.MakeTicket(6, 60)).block;
    runner.Serve(runner.MakeTicket(0, 5));  // Something else in between leaves no trace.
    EXPECT_EQ(*runner.Serve(runner.MakeTicket(6, 60)).block, once);
    EXPECT_EQ(*other.Serve(other.MakeTicket(6, 60)).block, once);
    EXPECT_NE(*runner.Serve(runner.MakeTicket(3, 60)).block, once);
  }
}

TEST(Runner, TicketsThatContinueOneAnotherGiveTheFragmentInOnePiece) {
  for (const char* env_id : {"CartPole-v1", "Pendulum-v1"}) {
    WorkingRunner whole_runner(env_id, 25), first_runner(env_id, 25), second_runner(env_id, 25);
    for (WorkingRunner* runner : {&whole_runner, &first_runner, &second_runner}) runner->PutPolicy();
    const Fragment whole = whole_runner.Serve(whole_runner.MakeTicket(3, 40));
    const Fragment first = first_runner.Serve(first_runner.MakeTicket(3, 15));
    v1::Ticket rest = second_runner.MakeTicket(3, 25);  // Another actor goes on.
    *rest.mutable_env_state() = FindField(first, "env_state");
    const Fragment second = second_runner.Serve(rest);

    for (const char* name :
         {"action", "log_prob", "reward", "terminated", "truncated", "final_obs", "episode_return", "episode_length"}) {
      EXPECT_EQ(FindField(first, name).data() + FindField(second, name).data(), FindField(whole, name).data()) << name;
    }
    EXPECT_GT(FindField(whole, "episode_length").shape(0), 0);
    EXPECT_EQ(FindField(second, "env_state").data(), FindField(whole, "env_state").data());
    // The last row of the first fragment is the first row of the second.
    const std::string before = FindField(first, "obs").data();
    const size_t row = before.size() / 16;
    EXPECT_EQ(before.substr(0, 15 * row) + FindField(second, "obs").data(), FindField(whole, "obs").data());
    EXPECT_EQ(before.substr(15 * row), FindField(second, "obs").data().substr(0, row));
  }
}

TEST(Runner, LogProbsAreThoseOfThePolicyAtWhatItSaw) {
  WorkingRunner discrete("CartPole-v1"), continuous("Pendulum-v1");
  for (WorkingRunner* runner : {&discrete, &continuous}) {
    runner->PutPolicy();
    const Fragment batch = runner->Serve(runner->MakeTicket(0, 10));
    const auto policy = runner->Snapshot(4);
    const torch::Tensor obs = AsTensor(FindField(batch, "obs"), torch::kFloat32).view({11, kE, -1});
    const torch::Tensor head = policy->Head(obs.slice(0, 0, 10).reshape({10 * kE, -1})).clone();
    const torch::Tensor log_prob = AsTensor(FindField(batch, "log_prob"), torch::kFloat32).flatten();
    torch::Tensor want;
    if (runner == &discrete) {
      const torch::Tensor action = AsTensor(FindField(batch, "action"), torch::kInt64).flatten();
      want = torch::log_softmax(head, 1).gather(1, action.unsqueeze(1)).squeeze(1);
    } else {
      const torch::Tensor action = AsTensor(FindField(batch, "action"), torch::kFloat32).reshape({10 * kE, -1});
      want = GaussianLogProb(head, policy->log_std(), action);
    }
    EXPECT_TRUE(torch::allclose(log_prob, want, 1e-4, 1e-5)) << log_prob << want;
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
  const auto ratio = [](WorkingRunner* made_by, const torch::Tensor& obs, const BatchValues& values) {
    const auto policy = made_by->Snapshot(4);
    const torch::Tensor head = policy->Head(obs.reshape({T * kE, -1})).clone();
    const torch::Tensor action = Floats(values, "action").view({T * kE, -1});
    return (GaussianLogProb(head, policy->log_std(), action) - Floats(values, "log_prob")).exp();
  };
  runner.PutPolicy();
  FragmentShape shape = runner.Shape(T);
  shape.obs_dtype = v1::DATA_TYPE_BFLOAT16;
  const BatchValues values(runner.Serve(runner.MakeTicket(0, T)), shape);
  EXPECT_GT(values.saved_bytes(), 0u);
  const torch::Tensor obs = Floats(values, "obs").view({T + 1, kE, -1}).slice(0, 0, T);
  EXPECT_TRUE(torch::allclose(ratio(&runner, obs, values), torch::ones({T * kE}), 1e-4, 1e-4));

  exact.PutPolicy();
  const BatchValues plain(exact.Serve(exact.MakeTicket(0, T)), exact.Shape(T));
  const torch::Tensor raw = Floats(plain, "obs").view({T + 1, kE, -1}).slice(0, 0, T);
  const torch::Tensor rounded = raw.to(torch::kBFloat16).to(torch::kFloat32);
  EXPECT_TRUE(torch::allclose(ratio(&exact, raw, plain), torch::ones({T * kE}), 1e-4, 1e-4));
  EXPECT_FALSE(torch::allclose(ratio(&exact, rounded, plain), torch::ones({T * kE}), 1e-4, 1e-4));
  // The episodes begin alike, and are others for the first rounded action.
  EXPECT_TRUE(obs[0].equal(rounded[0]));
}

TEST(Runner, APackedFragmentIsTheSameEachTimeAndInPieces) {
  v1::TransportConfig transport;
  transport.set_trajectory_precision(v1::PRECISION_BF16);
  transport.set_trajectory_compression(v1::COMPRESSION_ZSTD);
  WorkingRunner whole("CartPole-v1", 25, transport), first("CartPole-v1", 25, transport);
  WorkingRunner second("CartPole-v1", 25, transport);
  for (WorkingRunner* runner : {&whole, &first, &second}) runner->PutPolicy();
  const Fragment all = whole.Serve(whole.MakeTicket(3, 80));
  EXPECT_EQ(*whole.Serve(whole.MakeTicket(3, 80)).block, *all.block);

  const auto values = [](WorkingRunner& runner, const Fragment& batch) {
    FragmentShape shape = runner.Shape(batch.header.steps());
    shape.obs_dtype = v1::DATA_TYPE_BFLOAT16;
    return std::make_unique<BatchValues>(batch, shape);
  };
  const auto begun = values(first, first.Serve(first.MakeTicket(3, 30)));
  v1::Ticket rest = second.MakeTicket(3, 50);
  *rest.mutable_env_state() = begun->env_state();
  const auto ended = values(second, second.Serve(rest)), want = values(whole, all);
  // The row where they meet is in both.
  const auto begun_obs = begun->floats("obs"), ended_obs = ended->floats("obs");
  const size_t row = begun_obs.size() / 31, rows = begun_obs.size() - row;
  std::vector<float> obs(begun_obs.begin(), begun_obs.begin() + rows);
  EXPECT_EQ(begun_obs.subspan(rows), ended_obs.first(row));
  obs.insert(obs.end(), ended_obs.begin(), ended_obs.end());
  EXPECT_EQ(absl::MakeConstSpan(obs), want->floats("obs"));
  const auto begun_log_prob = begun->floats("log_prob"), ended_log_prob = ended->floats("log_prob");
  std::vector<float> log_prob(begun_log_prob.begin(), begun_log_prob.end());
  log_prob.insert(log_prob.end(), ended_log_prob.begin(), ended_log_prob.end());
  EXPECT_EQ(absl::MakeConstSpan(log_prob), want->floats("log_prob"));
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
  EXPECT_EQ(runner.Serve(newest).policy_version(), 5u);
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
  EXPECT_EQ(runner.Serve(runner.MakeTicket(0, 4)).sequence(), 1u);
  gone.set_policy_version(5);
  EXPECT_EQ(runner.Serve(gone).sequence(), 2u);  // It may come again.
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
  expect([](v1::Ticket* ticket) { ticket->set_num_envs(2); }, "ticket 1: has 2 environments x 4 steps, want 3");
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
  const Fragment batch = *two.outbox().NextToSend(1);
  ASSERT_EQ(batch.header.ticket_id(), lengthy.id());
  EXPECT_EQ(*batch.block, *alone.Serve(lengthy).block);

  // A fragment begins by a call into each environment, and a step is another.
  const auto entries = [&two](int i) { return two.runner(i).activity().Read().entries; };
  EXPECT_EQ(entries(0) + entries(1), kE * (2 + 1 + 20));
  EXPECT_GT(std::min(entries(0), entries(1)), kE * 2) << "nobody helped";
  // What was done by two threads is work of both.
  EXPECT_GE(batch.header.stage_seconds().env_step(), 20 * kE * 0.010);
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
    undisturbed = *runner.Serve(runner.MakeTicket(3, 20)).block;
  }
  // 3 environments x 20 steps = 60 passages without a fault.
  for (const char* spec : {"env:throw@at=31", "env:nan@at=31", "env:shape@at=1;env:throw@at=60"}) {
    const Faults faults(spec);
    WorkingRunner runner("Pendulum-v1", 7);
    runner.PutPolicy();
    const Fragment batch = runner.Serve(runner.MakeTicket(3, 20));
    EXPECT_EQ(*batch.block, undisturbed) << spec;
    EXPECT_EQ(batch.header.env_steps_collected(), 60u) << spec;
    EXPECT_EQ(runner.End(), absl::OkStatus());
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
      1, [&config] { return MakeRunnerEnv(config); }, nullptr);
  EXPECT_FALSE(Runner::Make(config, &rebuilds, nullptr, nullptr, nullptr, nullptr, nullptr).ok());
}

}  // namespace
}  // namespace skein
