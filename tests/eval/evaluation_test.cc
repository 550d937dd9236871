// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/config/config.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "env/vector_env.h"
#include "eval/checkpoint_policy.h"
#include "eval/recorded_episode.h"
#include "eval/render_episode.h"
#include "gmock/gmock.h"
#include "learner/network/actor_critic.h"
#include "learner/network/tensor_codec.h"
#include "learner/run/checkpoint.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::Each;
using testing::HasSubstr;

// A checkpoint of an untrained policy whose normaliser has seen something.
Checkpoint Untrained(const std::string& env_id, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all = {"env.id=" + env_id, "env.max_episode_steps=20"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const v1::RunConfig config = LoadRunConfig("", all, 2).value();
  const EnvSpec spec = FindEnvSpec(env_id, MakeEnvOptions(config.env())).value();
  const ActorCritic network(MakeActorCriticOptions(config.model(), spec), 7);
  Checkpoint checkpoint;
  checkpoint.env_steps = 1024;
  checkpoint.iteration = 1;
  checkpoint.env_id = env_id;
  checkpoint.config_yaml = ToYaml(config);
  NamedTensors model = network.AllParameters();
  model.emplace_back("obs_normalizer.count", torch::full({}, 50.0, torch::kFloat64));
  model.emplace_back("obs_normalizer.mean", torch::full({spec.obs_size}, 0.1, torch::kFloat64));
  model.emplace_back("obs_normalizer.variance", torch::full({spec.obs_size}, 4.0, torch::kFloat64));
  checkpoint.model = EncodeTensors(model);
  return checkpoint;
}

std::string Save(const ScratchFolder& folder, const Checkpoint& checkpoint) {
  return SaveCheckpoint(folder.path() + "/checkpoints", checkpoint, 3).value();
}

TEST(Evaluate, TakesACheckpointItsFolderOrTheRuns) {
  const ScratchFolder folder;
  const std::string path = Save(folder, Untrained("CartPole-v1"));
  const auto direct = Evaluate({.checkpoint = path, .episodes = 3, .seed = 4});
  ASSERT_TRUE(direct.ok()) << direct.status();
  EXPECT_EQ(direct->checkpoint, path);
  EXPECT_EQ(direct->env_steps, 1024u);
  EXPECT_EQ(direct->digest, CheckpointDigest(Untrained("CartPole-v1")));
  EXPECT_EQ(direct->mujoco_version, MujocoVersion());
  EXPECT_THAT(direct->lengths, testing::SizeIs(3));
  for (const std::string& above : {folder.path(), folder.path() + "/checkpoints"}) {
    const auto found = Evaluate({.checkpoint = above, .episodes = 3, .seed = 4});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->checkpoint, path);
    EXPECT_EQ(found->returns, direct->returns);
  }
}

TEST(Evaluate, KeepsToTheRunsTimeLimit) {
  const ScratchFolder folder;
  const auto result = Evaluate({.checkpoint = Save(folder, Untrained("Pendulum-v1")), .episodes = 4});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->lengths, Each(20));
}

TEST(Evaluate, ActsAsOneEnvironmentAloneWithThePolicysMeanWould) {
  const ScratchFolder folder;
  const Checkpoint checkpoint = Untrained("Pendulum-v1");
  const auto result = Evaluate({.checkpoint = Save(folder, checkpoint), .episodes = 3, .seed = 9});
  ASSERT_TRUE(result.ok()) << result.status();

  // The oracle: episode 2 by itself; mean 0.1 and variance 4 make the scale (x - 0.1) / sqrt(4 + 1e-8).
  const torch::InferenceMode no_gradients;
  auto network =
      std::make_shared<ActorCritic>(MakeActorCriticOptions(LoadRunConfig("", {"env.id=Pendulum-v1"}, 2)->model(),
                                                           MakeEnv("Pendulum-v1").value()->spec()),
                                    7);
  auto env = VectorEnv::Make({.env_id = "Pendulum-v1",
                              .size = 1,
                              .seed = 9,
                              .max_episode_steps = 20,
                              .reset_purpose = RandomPurpose::kEvaluation})
                 .value();
  env->ResetAll(2);
  double sum = 0;
  for (int step = 0; step < 20; ++step) {
    torch::Tensor obs = torch::empty({1, 3});
    env->Observe(obs.data_ptr<float>());
    const float action = network->PolicyHead((obs - 0.1) / 2).item<float>();
    sum += env->Step(&action).reward[0];
  }
  EXPECT_NEAR(result->returns[2], sum, 1e-3);
}

TEST(Evaluate, DependsOnTheSeedAndTheEpisodeNotOnHowManyRun) {
  const ScratchFolder folder;
  const std::string path = Save(folder, Untrained("Pendulum-v1"));
  const auto few = Evaluate({.checkpoint = path, .episodes = 2, .seed = 1});
  const auto many = Evaluate({.checkpoint = path, .episodes = 130, .seed = 1});  // More than one round.
  const auto other = Evaluate({.checkpoint = path, .episodes = 2, .seed = 2});
  ASSERT_TRUE(few.ok() && many.ok() && other.ok());
  ASSERT_EQ(many->returns.size(), 130u);
  EXPECT_NEAR(few->returns[0], many->returns[0], 1e-3);
  EXPECT_NEAR(few->returns[1], many->returns[1], 1e-3);
  EXPECT_GT(std::abs(few->returns[0] - other->returns[0]), 1e-3);
  EXPECT_NE(many->returns[129], 0);
}

TEST(Evaluate, SaysWhatIsNotThere) {
  const ScratchFolder folder;
  EXPECT_TRUE(absl::IsNotFound(Evaluate({.checkpoint = folder.path() + "/none"}).status()));
  EXPECT_TRUE(absl::IsNotFound(Evaluate({.checkpoint = folder.path()}).status()));
  const std::string path = Save(folder, Untrained("CartPole-v1"));
  EXPECT_TRUE(absl::IsInvalidArgument(Evaluate({.checkpoint = path, .episodes = 0}).status()));
}

TEST(Evaluate, ADamagedFileIsDataLoss) {
  const ScratchFolder folder;
  Save(folder, Untrained("CartPole-v1"));
  folder.Write("checkpoints/step_000000001024/model.safetensors", "garbage");
  const auto status = Evaluate({.checkpoint = folder.path() + "/checkpoints/step_000000001024"}).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("model.safetensors"));
}

TEST(Evaluate, SkipsADamagedNewestCheckpointWithAWarning) {
  const ScratchFolder folder;
  const std::string older = Save(folder, Untrained("CartPole-v1"));
  Checkpoint newer = Untrained("CartPole-v1");
  newer.env_steps = 2048;
  Save(folder, newer);
  EXPECT_THAT(Evaluate({.checkpoint = folder.path(), .episodes = 1})->warnings, testing::IsEmpty());
  folder.Write("checkpoints/step_000000002048/model.safetensors", "garbage");
  const auto result = Evaluate({.checkpoint = folder.path(), .episodes = 1});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->checkpoint, older);
  EXPECT_THAT(result->warnings,
              testing::ElementsAre(testing::AllOf(HasSubstr("skipped"), HasSubstr("step_000000002048"),
                                                  HasSubstr("model.safetensors"))));
}

TEST(Evaluate, TensorsThatDoNotFitTheConfigurationAreDataLoss) {
  const ScratchFolder folder;
  Checkpoint narrow = Untrained("CartPole-v1");
  narrow.config_yaml = Untrained("CartPole-v1", {"model.hidden=[32, 64]"}).config_yaml;
  const auto shape = Evaluate({.checkpoint = Save(folder, narrow)}).status();
  EXPECT_TRUE(absl::IsDataLoss(shape));
  EXPECT_THAT(shape.message(), HasSubstr("policy.0.weight: got shape [64, 4], want [32, 4]"));

  Checkpoint without_mean = Untrained("CartPole-v1");
  without_mean.env_steps = 2048;
  without_mean.model.erase(without_mean.model.end() - 2);
  const auto missing = Evaluate({.checkpoint = Save(folder, without_mean)}).status();
  EXPECT_TRUE(absl::IsDataLoss(missing));
  EXPECT_THAT(missing.message(), HasSubstr("obs_normalizer.mean is missing"));
}

TEST(Evaluate, APolicyWithAMemoryActsWithIt) {
  for (const char* memory : {"gru", "lstm"}) {
    const ScratchFolder folder;
    const std::vector<std::string> overrides = {std::string("model.memory=") + memory, "model.memory_size=12",
                                                "model.policy_head_scale=1"};
    const std::string path = Save(folder, Untrained("Pendulum-v1", overrides));
    const auto result = Evaluate({.checkpoint = path, .episodes = 130, .seed = 9});  // More than one round.
    ASSERT_TRUE(result.ok()) << result.status();

    // The oracle: episode 129 by itself, its state carried from step to step.
    const auto loaded = LoadCheckpointPolicy(path);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    auto env = VectorEnv::Make({.env_id = "Pendulum-v1",
                                .size = 1,
                                .seed = 9,
                                .max_episode_steps = 20,
                                .reset_purpose = RandomPurpose::kEvaluation})
                   .value();
    env->ResetAll(129);
    std::vector<float> obs(3), state(static_cast<size_t>(loaded->policy->spec().state_size()));
    double sum = 0;
    for (int step = 0; step < 20; ++step) {
      env->Observe(obs.data());
      float action = 0;
      loaded->policy->Act(obs.data(), state.data(), 1, &action, state.data());
      sum += env->Step(&action).reward[0];
    }
    EXPECT_NEAR(result->returns[129], sum, 1e-9);
  }
}

// The map of episode 1 of three is that of the same flight alone, each UAV's state carried from step to step; without
// states it is another.
TEST(Evaluate, DrawsWhatAPolicyWithAMemoryDid) {
  for (const char* memory : {"gru", "lstm"}) {
    const ScratchFolder folder;
    const std::vector<std::string> overrides = {std::string("model.memory=") + memory,
                                                "model.memory_size=12",
                                                "model.policy_head_scale=1",
                                                "env.uav.uavs=3",
                                                "env.uav.size=9",
                                                "env.uav.obstacles=0",
                                                "env.uav.continuous=true"};
    const std::string path = Save(folder, Untrained("UavNavigate-v0", overrides));
    const auto result = Evaluate(
        {.checkpoint = path, .episodes = 3, .seed = 9, .render_path = folder.path() + "/map.svg", .render_episode = 1});
    ASSERT_TRUE(result.ok()) << result.status();

    const auto loaded = LoadCheckpointPolicy(path);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    for (const bool remembers : {true, false}) {
      RecordedEpisode alone = {.spec = loaded->spec,
                               .options = MakeEnvOptions(loaded->config),
                               .policy = "checkpoint",
                               .seed = 9,
                               .episode = 1};
      auto envs = MakeEnvs("UavNavigate-v0", 1, alone.options).value();
      envs[0] = MakeRecordingEnv(std::move(envs[0]), &alone.states);
      auto env = VectorEnv::Wrap(std::move(envs), {.env_id = "UavNavigate-v0",
                                                   .seed = 9,
                                                   .max_episode_steps = 20,
                                                   .reset_purpose = RandomPurpose::kEvaluation,
                                                   .env = alone.options})
                     .value();
      env->ResetAll(1);
      const PolicySpec& spec = loaded->policy->spec();
      std::vector<float> obs(3 * spec.obs_size), action(3 * spec.head_size()), state(3 * spec.state_size());
      for (bool ended = false; !ended;) {
        env->Observe(obs.data());
        loaded->policy->Act(obs.data(), state.data(), 3, action.data(), state.data());
        if (!remembers) std::fill(state.begin(), state.end(), 0.0f);
        const VectorEnv::StepResult step = env->Step(action.data());
        ended = step.terminated[0] != 0 || step.truncated[0] != 0;
      }
      const std::string name = remembers ? "alone.svg" : "forgetful.svg";
      ASSERT_TRUE(RenderEpisode(folder.path() + "/" + name, alone).ok());
      EXPECT_EQ(folder.Read("map.svg") == folder.Read(name), remembers);
    }
  }
}

TEST(Evaluate, NeedsNoNormaliserWhereTheRunHadNone) {
  const ScratchFolder folder;
  Checkpoint checkpoint = Untrained("CartPole-v1", {"model.normalize_observations=false"});
  checkpoint.model.resize(checkpoint.model.size() - 3);
  EXPECT_TRUE(Evaluate({.checkpoint = Save(folder, checkpoint), .episodes = 1}).ok());
}

TEST(Evaluate, FliesInTheWorldOfTheCheckpoint) {
  const ScratchFolder folder;
  const std::string path =
      Save(folder, Untrained("UavNavigate-v0", {"env.uav.uavs=3", "env.uav.size=9", "env.uav.obstacles=5"}));
  const std::string map = folder.path() + "/map.svg";
  const auto result = Evaluate({.checkpoint = path, .episodes = 2, .env_id = "UavNavigate-v0", .render_path = map});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->policy, "checkpoint");
  EXPECT_THAT(result->metrics.at("success_rate"), testing::SizeIs(2));
  EXPECT_THAT(folder.Read("map.svg"), HasSubstr("seed 1, episode 0, 3 UAVs, 5 obstacles"));
  const auto other = Evaluate({.checkpoint = path, .env_id = "UavCover-v0"}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(other));
  EXPECT_THAT(other.message(), HasSubstr("is of UavNavigate-v0"));
}

// The same episodes: forward reward and length do not change, the cost of control grows.
TEST(Evaluate, ReportsTheReturnOfUnclippedActionsToo) {
  const ScratchFolder folder;
  // An untrained head whose means leave [-1, 1].
  const std::string path = Save(folder, Untrained("Swimmer-v5", {"model.policy_head_scale=100"}));
  const auto plain = Evaluate({.checkpoint = path, .episodes = 3});
  const auto both = Evaluate({.checkpoint = path, .episodes = 3, .unclipped_return = true});
  ASSERT_TRUE(plain.ok() && both.ok()) << both.status();
  EXPECT_THAT(plain->unclipped_returns, testing::IsEmpty());
  EXPECT_EQ(both->returns, plain->returns);
  EXPECT_EQ(both->metrics, plain->metrics);
  ASSERT_THAT(both->unclipped_returns, testing::SizeIs(3));
  // Of the terms only the cost of control, and it accounts for the whole difference.
  EXPECT_THAT(plain->unclipped_metrics, testing::IsEmpty());
  ASSERT_THAT(both->unclipped_metrics, testing::ElementsAre(testing::Key("reward_ctrl")));
  for (int i = 0; i < 3; ++i) {
    EXPECT_LT(both->unclipped_returns[i], both->returns[i]);
    EXPECT_NEAR(both->unclipped_returns[i] - both->returns[i],
                both->unclipped_metrics.at("reward_ctrl")[i] - both->metrics.at("reward_ctrl")[i], 0.05);
  }

  // A run that scores unclipped actions anyway reports the same number twice.
  const ScratchFolder other;
  const std::string own =
      Save(other, Untrained("Swimmer-v5", {"model.policy_head_scale=100", "env.clip_actions_for_reward=false"}));
  const auto gymnasiums = Evaluate({.checkpoint = own, .episodes = 3, .unclipped_return = true});
  ASSERT_TRUE(gymnasiums.ok()) << gymnasiums.status();
  EXPECT_EQ(gymnasiums->returns, both->unclipped_returns);
  EXPECT_EQ(gymnasiums->unclipped_returns, both->unclipped_returns);
  EXPECT_EQ(gymnasiums->metrics.at("reward_ctrl"), both->unclipped_metrics.at("reward_ctrl"));
}

TEST(Evaluate, RunsABaselineWithoutACheckpoint) {
  const auto result = Evaluate({.episodes = 3,
                                .seed = 1000,
                                .baseline = "greedy",
                                .env_id = "UavNavigate-v0",
                                .overrides = {"env.uav.uavs=20", "env.max_episode_steps=7"}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->policy, "greedy");
  EXPECT_EQ(result->checkpoint, "");
  EXPECT_EQ(result->digest, "");
  EXPECT_THAT(result->lengths, Each(7));
}

TEST(Evaluate, TakesSettingsOfTheEnvironmentInPlaceOfTheCheckpoints) {
  const ScratchFolder folder;
  const std::string path = Save(folder, Untrained("QuadrupedStand-v0"));
  EvaluationOptions options = {.checkpoint = path, .episodes = 4};
  EXPECT_THAT(Evaluate(options)->lengths, Each(20));  // The checkpoint's.
  options.overrides = {"env.max_episode_steps=30", "env.mujoco.stand_seconds=0"};
  const auto result = Evaluate(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->lengths, Each(30));
  EXPECT_THAT(result->metrics.at("stood"), Each(1));  // Nothing is asked of it.
}

TEST(Evaluate, RefusesOptionsThatContradictEachOther) {
  const ScratchFolder folder;
  const ScratchFolder other_folder;
  const std::string path = Save(folder, Untrained("CartPole-v1"));
  const std::string picture = folder.path() + "/map.svg";
  const auto refused = [](const EvaluationOptions& options, const std::string& why) {
    const auto status = Evaluate(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(why));
  };
  refused({}, "want --checkpoint or --baseline");
  refused({.checkpoint = path, .baseline = "random"}, "want one of them");
  refused({.checkpoint = path, .overrides = {"ppo.lr=1e-3"}}, "only settings of env");
  const std::string quadruped = Save(other_folder, Untrained("QuadrupedStand-v0"));
  refused({.checkpoint = quadruped, .overrides = {"env.mujoco.observation=joints"}},
          "has 22 observations and 8 actions; the policy was trained with 29 and 8");
  const ScratchFolder third_folder;
  const std::string blind = Save(third_folder, Untrained("CartPole-v1", {"env.hide=velocities"}));
  refused({.checkpoint = blind, .overrides = {"env.hide=[0, 2]"}},
          "other columns of an observation than in its training");
  EXPECT_TRUE(Evaluate({.checkpoint = blind, .episodes = 1, .overrides = {"env.hide=[1, 3]"}}).ok());  // The same ones.
  refused({.baseline = "random"}, "want --env");
  refused({.baseline = "lazy", .env_id = "CartPole-v1"}, "random or greedy");
  refused({.baseline = "greedy", .env_id = "CartPole-v1"}, "CartPole-v1 has no greedy policy");
  refused({.baseline = "random", .env_id = "CartPole-v2"}, "did you mean");
  refused({.baseline = "random", .env_id = "CartPole-v1", .overrides = {"ppo.lr=1e-3"}}, "ppo.lr");
  refused({.baseline = "random", .env_id = "CartPole-v1", .overrides = {"env.id=Pendulum-v1"}}, "env.id");
  refused({.baseline = "random", .env_id = "UavCover-v0", .overrides = {"env.uav.uavs=0"}}, "env.uav.uavs");
  refused({.baseline = "random", .env_id = "UavCover-v0", .overrides = {"env.uav.size=5"}}, "need 60 cells, got 25");
  refused({.checkpoint = path, .unclipped_return = true}, "only MuJoCo environments");
  refused({.checkpoint = path, .render_path = picture}, "no such picture of CartPole-v1");
  refused({.baseline = "random", .env_id = "UavCover-v0", .render_path = picture, .render_episode = 10}, "under 10");
  EXPECT_EQ(folder.Read("map.svg"), "");
}

}  // namespace
}  // namespace skein
