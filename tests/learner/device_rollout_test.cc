// SPDX-License-Identifier: Apache-2.0
#include "learner/run/device_rollout.h"

#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config/config.h"
#include "env/env_config.h"
#include "env/tensor/uav/tensor_world.h"
#include "env/vector_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/run/trainer.h"

namespace skein {
namespace {

using testing::HasSubstr;

// 12 worlds of 3 UAVs, 20 steps of each an iteration; episodes last 14 steps at most.
v1::RunConfig Config(const std::string& env_id, const std::vector<std::string>& more = {}) {
  v1::RunConfig config;
  std::vector<std::string> overrides = {"env.id=" + env_id,
                                        "env.max_episode_steps=14",
                                        "env.uav.uavs=3",
                                        "env.uav.obstacles=5",
                                        "env.uav.size=6",
                                        "env.uav.sensing_radius=1",
                                        "env.uav.neighbours=2",
                                        "rollout.num_envs=12",
                                        "rollout.envs_per_runner=4",
                                        "rollout.steps_per_iteration=240",
                                        "ppo.minibatch_size=120",
                                        "ppo.epochs=2",
                                        "model.hidden=[8]",
                                        "sync.mode=on_device"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  for (const std::string& one : overrides) EXPECT_TRUE(ApplyOverride(one, &config).ok()) << one;
  ApplyDefaults(&config);
  return config;
}

std::unique_ptr<VectorEnv> MakeNative(const v1::RunConfig& config) {
  VectorEnv::Options options;
  options.env_id = config.env().id();
  options.size = static_cast<int>(config.rollout().num_envs());
  options.seed = config.seed();
  options.max_episode_steps = static_cast<int>(config.env().max_episode_steps());
  options.env = MakeEnvOptions(config.env());
  auto env = VectorEnv::Make(options);
  EXPECT_TRUE(env.ok()) << env.status();
  return *std::move(env);
}

std::unique_ptr<DeviceRollout> MakeRollout(const v1::RunConfig& config) {
  auto rollout = DeviceRollout::Make(config, 0, config.rollout().num_envs(), torch::kCPU);
  EXPECT_TRUE(rollout.ok()) << rollout.status();
  (*rollout)->Begin();
  return *std::move(rollout);
}

struct Networks {
  explicit Networks(const v1::RunConfig& config, const EnvSpec& spec)
      : network(MakeActorCriticOptions(config.model(), spec), 3),
        judge{&network, ObsScale::Identity(spec.obs_size), ObsScale::Identity(spec.global_state_size)} {}
  ActorCritic network;
  DeviceRollout::Judge judge;
};

template <typename Value>
torch::Tensor Copied(const Value* values, std::vector<int64_t> shape, torch::ScalarType type) {
  return torch::from_blob(const_cast<Value*>(values), shape, type).clone();
}

class DeviceRollouts : public testing::TestWithParam<std::vector<std::string>> {};

// The same actions in the native form give what the batch says.
TEST_P(DeviceRollouts, BatchesAreWhatVectorEnvSays) {
  const std::vector<std::string>& setting = GetParam();
  const v1::RunConfig config = Config(setting[0], {setting.begin() + 1, setting.end()});
  const auto native = MakeNative(config);
  const EnvSpec& spec = native->spec();
  native->ResetAll(0);
  const auto rollout = MakeRollout(config);
  const Networks networks(config, spec);
  const torch::NoGradGuard no_grad;
  const int64_t E = 12, A = spec.num_agents, M = E * A, T = 20, O = spec.obs_size, G = spec.global_state_size;
  torch::Tensor obs = torch::empty({M, O}), state = torch::empty({E, G});
  bool any_truncated = false;
  for (uint64_t round = 0; round < 2; ++round) {
    const DeviceRollout::Iteration got = rollout->Collect(networks.judge, round);
    const Batch& batch = got.batch;
    const bool central = batch["state"].defined();
    size_t episodes = 0;
    for (int64_t t = 0; t < T; ++t) {
      native->Observe(obs.data_ptr<float>());
      native->GlobalState(state.data_ptr<float>());
      ASSERT_TRUE(torch::allclose(batch["obs"][t], obs, 1e-5, 1e-5));
      if (central) {
        ASSERT_TRUE(torch::allclose(batch["state"][t], state, 1e-5, 1e-5));
      }
      const torch::Tensor action = batch["action"][t].to(torch::kFloat32).contiguous();
      const VectorEnv::StepResult want = native->Step(action.data_ptr<float>());
      EXPECT_TRUE(torch::allclose(batch["reward"][t], Copied(want.reward, {M}, torch::kFloat32), 1e-5, 1e-5));
      const torch::Tensor ended = Copied(want.agent_terminated, {M}, torch::kUInt8).to(torch::kBool);
      const torch::Tensor active = Copied(want.active, {M}, torch::kUInt8).to(torch::kBool);
      EXPECT_TRUE(torch::equal(batch["terminated"][t], ended));
      EXPECT_TRUE(torch::equal(batch["active"][t], active));
      torch::Tensor input = Copied(want.final_obs, {M, O}, torch::kFloat32);
      if (central) {
        const torch::Tensor last = Copied(want.final_state, {E, G}, torch::kFloat32);
        input = torch::cat({input, last.unsqueeze(1).expand({E, A, G}).reshape({M, G})}, 1);
      }
      const torch::Tensor value = networks.network.Value(input);
      for (int64_t e = 0; e < E; ++e) {
        const bool truncated = want.truncated[e] != 0;
        if (truncated || want.terminated[e] != 0) {
          ASSERT_LT(episodes, got.episode_length.size());
          EXPECT_EQ(got.episode_length[episodes], want.episode_length[e]);
          EXPECT_NEAR(got.episode_return[episodes], want.episode_return[e], 1e-4);
          for (size_t p = 0; p < spec.episode_metrics.size(); ++p) {
            EXPECT_NEAR(got.episode_metrics[episodes * spec.episode_metrics.size() + p],
                        want.episode_metrics[e * spec.episode_metrics.size() + p], 1e-5);
          }
          ++episodes;
        }
        for (int64_t m = e * A; m < (e + 1) * A; ++m) {
          const bool cut = truncated && active[m].item<bool>() && !ended[m].item<bool>();
          EXPECT_EQ(batch["truncated"][t][m].item<bool>(), cut);
          if (!cut) continue;
          any_truncated = true;
          EXPECT_NEAR(batch["final_value"][t][m].item<float>(), value[m].item<float>(), 1e-5);
        }
      }
    }
    EXPECT_EQ(got.episode_length.size(), episodes);
    EXPECT_EQ(got.samples, batch["active"].sum().item<int64_t>());
  }
  EXPECT_TRUE(any_truncated);
}

INSTANTIATE_TEST_SUITE_P(
    All, DeviceRollouts,
    testing::Values(std::vector<std::string>{"UavNavigate-v0"},
                    std::vector<std::string>{"UavNavigate-v0", "env.uav.continuous=true", "model.central_critic=false"},
                    std::vector<std::string>{"UavCover-v0"}, std::vector<std::string>{"CartPole-v1"}));

TEST(DeviceRollout, ChoicesAreAsFrequentAsTheirProbabilitiesAndKnowThem) {
  const v1::RunConfig config = Config("UavNavigate-v0", {"model.policy_head_scale=30"});
  const auto rollout = MakeRollout(config);
  const Networks networks(config, rollout->env().spec());
  const torch::NoGradGuard no_grad;
  torch::Tensor expected = torch::zeros({9}), seen = torch::zeros({9});
  for (uint64_t iteration = 0; iteration < 20; ++iteration) {
    const Batch batch = rollout->Collect(networks.judge, iteration).batch;
    const torch::Tensor log_prob =
        networks.network.PolicyHead(batch["obs"].narrow(0, 0, 20).reshape({720, -1})).log_softmax(1);
    const torch::Tensor action = batch["action"].view({720, 1});
    EXPECT_TRUE(torch::allclose(log_prob.gather(1, action).view({-1}), batch["log_prob"].view({-1}), 1e-5, 1e-5));
    expected += log_prob.exp().sum(0);
    seen += torch::one_hot(action.view({-1}), 9).sum(0).to(torch::kFloat32);
  }
  // 14,400 samples: four standard deviations are 4 sqrt(14400 p (1 - p)) <= 240.
  EXPECT_LT((seen - expected).abs().max().item<float>(), 240);
  EXPECT_GT((expected - 1600).abs().max().item<float>(), 240);  // They are not all alike.
}

TEST(DeviceRollout, LogProbabilitiesAreMadeOnlyForAnAlgorithmThatReadsThem) {
  v1::RunConfig config = Config("CartPole-v1");
  config.mutable_reinforce();
  ApplyDefaults(&config);
  const auto rollout = MakeRollout(config);
  const Networks networks(config, rollout->env().spec());
  const torch::NoGradGuard no_grad;
  const Batch batch = rollout->Collect(networks.judge, 0).batch;
  EXPECT_FALSE(batch.has("log_prob"));
  EXPECT_TRUE(batch.has("reward"));
}

TEST(DeviceRollout, NoiseIsStandardNormalAndRepeatsItself) {
  const v1::RunConfig config = Config("UavNavigate-v0", {"env.uav.continuous=true"});
  const auto one = MakeRollout(config), other = MakeRollout(config);
  const Networks networks(config, one->env().spec());
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> noise;
  for (uint64_t iteration = 0; iteration < 10; ++iteration) {
    const Batch batch = one->Collect(networks.judge, iteration).batch;
    const Batch again = other->Collect(networks.judge, iteration).batch;
    EXPECT_TRUE(torch::equal(batch["action"], again["action"]));
    EXPECT_TRUE(torch::equal(batch["obs"], again["obs"]));
    const torch::Tensor mean = networks.network.PolicyHead(batch["obs"].narrow(0, 0, 20).reshape({720, -1}));
    noise.push_back(((batch["action"].view({720, 2}) - mean) / networks.network.log_std().exp()).view({-1}));
  }
  const torch::Tensor all = torch::cat(noise);          // 14,400 numbers.
  EXPECT_NEAR(all.mean().item<float>(), 0, 4 / 120.0);  // 4 / sqrt(14400)
  EXPECT_NEAR(all.std().item<float>(), 1, 4 / 169.0);   // 4 / sqrt(2 * 14400)
}

// 128 worlds of a single UAV in four cells end all the time, far more in a step than the 64 maps that are made.
TEST(DeviceRollout, WhatMissedMapsIsRolledAgain) {
  const std::vector<std::string> tiny = {"env.uav.uavs=1",       "env.uav.obstacles=1",
                                         "env.uav.size=2",       "rollout.num_envs=128",
                                         "env.uav.neighbours=0", "rollout.steps_per_iteration=2560"};
  const v1::RunConfig config = Config("UavNavigate-v0", tiny);
  const auto few = MakeRollout(config), all = MakeRollout(config);
  const auto worlds_of = [](DeviceRollout& rollout) { return dynamic_cast<TensorWorld*>(&rollout.env()); };
  EXPECT_EQ(worlds_of(*few)->prepared_per_step(), 64);
  worlds_of(*all)->PrepareAtOnce(128);
  const Networks networks(config, few->env().spec());
  const Batch want = all->Collect(networks.judge, 0).batch;
  const Batch got = few->Collect(networks.judge, 0).batch;
  EXPECT_EQ(worlds_of(*few)->prepared_per_step(), 128);  // It was too few.
  EXPECT_TRUE(torch::equal(got["obs"], want["obs"]));
  EXPECT_TRUE(torch::equal(got["reward"], want["reward"]));
  EXPECT_TRUE(torch::equal(few->SaveState(), all->SaveState()));
}

TEST(DeviceRollout, RefusesEnvironmentsWithoutTensorForm) {
  const auto made = DeviceRollout::Make(Config("Pendulum-v1"), 0, 12, torch::kCPU);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(made.status().message()),
              HasSubstr("Pendulum-v1 has no such form; CartPole-v1, UavCover-v0 and"));
}

class OnDevice : public testing::Test {
 protected:
  OnDevice() {
    std::string name = (std::filesystem::temp_directory_path() / "on_device_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~OnDevice() override { std::filesystem::remove_all(folder_); }

  static std::unique_ptr<Trainer> MakeTrainer(const v1::RunConfig& config) {
    auto trainer = Trainer::Make(config, MakeNative(config)->spec());
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    return *std::move(trainer);
  }

  static void Train(Trainer* trainer, uint64_t from, uint64_t to) {
    for (uint64_t iteration = from; iteration < to; ++iteration) {
      const auto collected = trainer->CollectOnDevice(iteration);
      ASSERT_TRUE(collected.ok()) << collected.status();
      EXPECT_EQ(collected->steps * collected->share_envs, 240);
      EXPECT_EQ(collected->columns % 12, 0);
      const auto stats = trainer->UpdateOnDevice(0.1 * static_cast<double>(iteration), iteration, 0, 0);
      ASSERT_TRUE(stats.ok()) << stats.status();
      for (const auto& [name, value] : *stats) EXPECT_TRUE(std::isfinite(value)) << name;
      EXPECT_EQ(stats->at("skipped_steps"), 0);
    }
  }

  std::string folder_;
};

TEST_F(OnDevice, TrainingRepeatsItselfAndGoesOnFromACheckpointAsIfNothingHadBeen) {
  for (const char* env : {"UavNavigate-v0", "UavCover-v0", "CartPole-v1"}) {
    const v1::RunConfig config = Config(env);
    const auto whole = MakeTrainer(config);
    ASSERT_TRUE(whole->BeginOnDevice(0, 12, {}).ok());
    Train(whole.get(), 0, 4);

    const auto begun = MakeTrainer(config);
    ASSERT_TRUE(begun->BeginOnDevice(0, 12, {}).ok());
    Train(begun.get(), 0, 2);
    const auto state = begun->StateOnDevice();
    ASSERT_TRUE(state.ok()) << state.status();
    RunRecord record;
    record.iteration = 2;
    record.env_steps = 480;
    record.state = *state;
    const std::string folder = folder_ + "/" + env;
    ASSERT_TRUE(begun->Save(folder, record).ok());

    const auto resumed = MakeTrainer(config);
    const auto from = resumed->Resume(folder);
    ASSERT_TRUE(from.ok()) << from.status();
    ASSERT_TRUE(resumed->BeginOnDevice(0, 12, from->record.state).ok());
    Train(resumed.get(), 2, 4);
    EXPECT_EQ(resumed->ParametersDigest(), whole->ParametersDigest());
    EXPECT_NE(resumed->ParametersDigest(), begun->ParametersDigest());
    Train(begun.get(), 2, 4);
    EXPECT_EQ(begun->ParametersDigest(), whole->ParametersDigest());
  }
}

TEST_F(OnDevice, AStateOfAnotherSizeIsRefused) {
  const v1::RunConfig config = Config("UavNavigate-v0");
  const auto trainer = MakeTrainer(config);
  ASSERT_TRUE(trainer->BeginOnDevice(0, 12, {}).ok());
  const auto state = trainer->StateOnDevice();
  ASSERT_TRUE(state.ok());
  const auto other = MakeTrainer(config);
  EXPECT_EQ(other->BeginOnDevice(0, 8, *state).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace skein
