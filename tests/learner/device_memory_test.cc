// SPDX-License-Identifier: Apache-2.0
// Mode on_device with a memory: states stay with the environments from step to step and from iteration to iteration.
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <memory>
#include <string>
#include <vector>

#include "base/config/config.h"
#include "learner/network/distribution.h"
#include "learner/run/device_rollout.h"
#include "learner/run/trainer.h"
#include "tests/learner/memory_sample.h"

namespace skein {
namespace {

constexpr int64_t kEnvs = 6, kSteps = 20;

// Episodes last nine steps at most.
v1::RunConfig Config(const std::string& env_id, const std::vector<std::string>& more) {
  v1::RunConfig config;
  std::vector<std::string> overrides = {"env.id=" + env_id,
                                        "env.max_episode_steps=9",
                                        "env.uav.uavs=3",
                                        "env.uav.obstacles=5",
                                        "env.uav.size=6",
                                        "rollout.num_envs=6",
                                        "rollout.envs_per_runner=3",
                                        "rollout.steps_per_iteration=120",
                                        "ppo.minibatch_size=60",
                                        "ppo.epochs=2",
                                        "model.hidden=[8]",
                                        "model.memory_size=5",
                                        "model.policy_head_scale=1",
                                        "sync.mode=on_device"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  for (const std::string& one : overrides) EXPECT_TRUE(ApplyOverride(one, &config).ok()) << one;
  ApplyDefaults(&config);
  return config;
}

std::unique_ptr<DeviceRollout> MakeRollout(const v1::RunConfig& config) {
  auto rollout = DeviceRollout::Make(config, 0, kEnvs, torch::kCPU);
  EXPECT_TRUE(rollout.ok()) << rollout.status();
  (*rollout)->Begin();
  return *std::move(rollout);
}

// For each state of episodes there is in two iterations, what the batch says is what a literal loop over steps gives.
void ExpectLiteralRollout(const v1::RunConfig& config) {
  const torch::NoGradGuard no_grad;
  const auto rollout = MakeRollout(config);
  const EnvSpec& spec = rollout->env().spec();
  const ActorCritic network(MakeActorCriticOptions(config.model(), spec), 3);
  const DeviceRollout::Judge judge{&network, ObsScale::Identity(spec.obs_size),
                                   ObsScale::Identity(spec.global_state_size)};
  const int64_t A = spec.num_agents, M = kEnvs * A, H = 5, P = network.memory().state_size();
  torch::Tensor carried = torch::zeros({M, P});
  for (uint64_t iteration = 0; iteration < 3; ++iteration) {
    const Batch batch = rollout->Collect(judge, iteration).batch;
    ASSERT_TRUE(batch["first_policy_state"].equal(carried));  // To the bit.
    const torch::Tensor ended = batch["ended"].unsqueeze(2).expand({kSteps, kEnvs, A}).reshape({kSteps, M});
    const torch::Tensor obs = batch["obs"].clamp(-10, 10);
    const auto states = LiteralStates(network.memory(), obs.narrow(0, 0, kSteps), ended, carried, {});
    std::vector<torch::Tensor> critics;
    torch::Tensor critic_obs = obs;
    if (batch.has("state")) {
      const int64_t G = batch["state"].size(2);
      critic_obs = torch::cat(
          {obs,
           batch["state"].clamp(-10, 10).unsqueeze(2).expand({kSteps + 1, kEnvs, A, G}).reshape({kSteps + 1, M, G})},
          2);
    }
    if (network.critic_memory().exists()) {
      critics = LiteralStates(network.critic_memory(), critic_obs.narrow(0, 0, kSteps), ended, carried, {});
    }
    for (int64_t t = 0; t < kSteps; ++t) {
      const torch::Tensor head = network.PolicyHead(states[t].narrow(1, 0, H));
      const torch::Tensor log_prob = CategoricalLogProb(head, batch["action"][t]);
      ASSERT_TRUE(batch["log_prob"][t].allclose(log_prob, 1e-5, 1e-5)) << t;
    }
    carried = (states.back() * ended[kSteps - 1].logical_not().unsqueeze(1)).clone();
    const torch::Tensor saved = rollout->SavePolicyState();
    ASSERT_TRUE(saved.view({M, P}).allclose(carried, 1e-5, 1e-5));
    carried = saved.view({M, P}).clone();
    EXPECT_TRUE(batch["ended"].any().item<bool>());
    // Finite values where episodes were cut off; what they are, PpoRecurrent's tests say of final observations.
    EXPECT_TRUE(batch["final_value"].isfinite().all().item<bool>());
    EXPECT_GT(batch["final_value"].masked_select(batch["truncated"]).abs().min().item<float>(), 0);
  }
}

TEST(DeviceMemory, ActsAsALiteralLoop) {
  for (const std::string memory : {"gru", "lstm"}) {
    ExpectLiteralRollout(Config("CartPole-v1", {"model.memory=" + memory}));
    ExpectLiteralRollout(Config("CartPole-v1", {"model.memory=" + memory, "model.critic_memory=separate"}));
    ExpectLiteralRollout(Config("CartPole-v1", {"model.memory=" + memory, "env.hide=velocities"}));
    const std::vector<std::string> shown = {"env.hide=velocities", "env.critic_sees_hidden=true"};
    ExpectLiteralRollout(Config("CartPole-v1", {"model.memory=" + memory, shown[0], shown[1]}));
    ExpectLiteralRollout(Config("UavNavigate-v0", {"model.memory=" + memory}));
    ExpectLiteralRollout(Config("UavNavigate-v0", {"model.memory=" + memory, "env.hide=[0-3]"}));
    ExpectLiteralRollout(Config("UavNavigate-v0", {"model.memory=" + memory, "model.critic_memory=separate"}));
  }
}

// The value at a time limit does not depend on where in the iteration the limit falls: iterations of one step each see
// the same episodes with the same values.
TEST(DeviceMemory, ValuesAtTimeLimitsCarryTheStateOfTheirStep) {
  for (const std::string memory : {"gru", "lstm"}) {
    const v1::RunConfig config = Config("CartPole-v1", {"model.memory=" + memory});
    const torch::NoGradGuard no_grad;
    const auto rollout = MakeRollout(config);
    const EnvSpec& spec = rollout->env().spec();
    const ActorCritic network(MakeActorCriticOptions(config.model(), spec), 3);
    const Batch batch = rollout->Collect({&network, ObsScale::Identity(spec.obs_size), ObsScale::Identity(0)}, 0).batch;
    // CartPole's last observation follows from the one before by its physics: play it again as tensors.
    const auto again =
        MakeTensorEnv("CartPole-v1", {.worlds = kEnvs, .seed = config.seed(), .max_episode_steps = 9}, {}).value();
    again->ResetAll();
    torch::Tensor state = torch::zeros({kEnvs, network.memory().state_size()}), obs = torch::empty({kEnvs, 1, 4});
    int64_t cut = 0;
    for (int64_t t = 0; t < kSteps; ++t) {
      again->Observe(obs);
      state = LiteralStep(network.memory(), obs.view({kEnvs, 4}).clamp(-10, 10), state);
      const TensorEnv::StepResult result = again->Advance(batch["action"][t]);
      again->Observe(obs);
      const torch::Tensor last = LiteralStep(network.memory(), obs.view({kEnvs, 4}).clamp(-10, 10), state);
      const torch::Tensor value = network.Value(last.narrow(1, 0, 5));
      for (int64_t e = 0; e < kEnvs; ++e) {
        if (!batch["truncated"][t][e].item<bool>()) continue;
        ++cut;
        EXPECT_NEAR(batch["final_value"][t][e].item<float>(), value[e].item<float>(), 1e-5) << t << " " << e;
      }
      state = state * result.ended.logical_not().unsqueeze(1);
      again->BeginEpisodes();
    }
    EXPECT_GT(cut, 0);
  }
}

TEST(DeviceMemory, ASavedStateGoesOnToTheBit) {
  const v1::RunConfig config = Config("CartPole-v1", {"model.memory=lstm", "model.critic_memory=separate"});
  const auto spec = MakeRollout(config)->env().spec();
  auto whole = Trainer::Make(config, spec).value(), first = Trainer::Make(config, spec).value();
  ASSERT_TRUE(whole->BeginOnDevice(0, kEnvs, {}).ok());
  ASSERT_TRUE(first->BeginOnDevice(0, kEnvs, {}).ok());
  const auto train = [](Trainer& trainer, uint64_t iteration) {
    const auto collected = trainer.CollectOnDevice(iteration);
    ASSERT_TRUE(collected.ok()) << collected.status();
    ASSERT_TRUE(trainer.UpdateOnDevice(0, iteration, 0, collected->columns).ok());
  };
  for (uint64_t i = 0; i < 2; ++i) train(*whole, i), train(*first, i);
  const auto state = first->StateOnDevice();
  ASSERT_TRUE(state.ok() && state->policy_state);
  EXPECT_EQ(state->policy_state->shape_size(), 3);
  // Another process: the same weights, the environments and memories from the state.
  const auto kept = first->Keep();
  auto second = Trainer::Make(config, spec).value();
  ASSERT_TRUE(second->TakeOver(kept->get(), {}).ok());
  ASSERT_TRUE(second->BeginOnDevice(0, kEnvs, *state).ok());
  auto forgets = Trainer::Make(config, spec).value();
  ASSERT_TRUE(forgets->TakeOver(kept->get(), {}).ok());
  ASSERT_TRUE(forgets->BeginOnDevice(0, kEnvs, {.env_state = state->env_state, .policy_state = {}}).ok());
  for (uint64_t i = 2; i < 4; ++i) train(*whole, i), train(*second, i), train(*forgets, i);
  EXPECT_EQ(second->ParametersDigest(), whole->ParametersDigest());
  EXPECT_NE(forgets->ParametersDigest(), whole->ParametersDigest());
}

}  // namespace
}  // namespace skein
