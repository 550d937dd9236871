// SPDX-License-Identifier: Apache-2.0
#include "learner/run/direction_rollout.h"

#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/config/config.h"
#include "env/env_config.h"
#include "env/vector_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/run/trainer.h"
#include "policy/direction.h"
#include "tests/learner/keeping_recorder.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr double kNoise = 0.3;
constexpr uint64_t kIteration = 4;
constexpr int64_t kDirs = 6, kWorlds = 3;

// 6 directions of 3 episodes of at most 40 steps.
v1::RunConfig Config(const std::string& env_id, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides = {
      "env.id=" + env_id,         "sync.mode=on_device",   "env.max_episode_steps=50", "env.uav.uavs=3",
      "env.uav.obstacles=5",      "env.uav.size=6",        "env.uav.sensing_radius=1", "env.uav.neighbours=2",
      "ars.top_dirs=4",           "directions.num_dirs=6", "directions.num_envs=3",    "directions.episode_length=40",
      "directions.noise_std=0.3", "model.hidden=[7, 5]"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  auto config = LoadRunConfig("", overrides, 1);
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

std::unique_ptr<VectorEnv> MakeNative(const v1::RunConfig& config) {
  VectorEnv::Options options;
  options.env_id = config.env().id();
  options.size = 1;
  options.seed = config.seed();
  options.max_episode_steps = static_cast<int>(config.env().max_episode_steps());
  options.env = MakeEnvOptions(config.env());
  return VectorEnv::Make(options).value();
}

std::unique_ptr<DirectionRollout> MakeRollout(const v1::RunConfig& config) {
  auto rollout = DirectionRollout::Make(config, torch::kCPU);
  EXPECT_TRUE(rollout.ok()) << rollout.status();
  return *std::move(rollout);
}

// A network, and a scale that is not the identity.
struct Acting {
  explicit Acting(const v1::RunConfig& config)
      : spec(MakeNative(config)->spec()), network(MakeActorCriticOptions(config.model(), spec), 3) {
    scale = {torch::full({spec.obs_size}, 0.1, torch::kFloat32), torch::full({spec.obs_size}, 1.5, torch::kFloat32)};
  }
  EnvSpec spec;
  ActorCritic network;
  ObsScale scale;
};

DirectionRollout::Iteration Collect(DirectionRollout* rollout, const Acting& acting) {
  auto iteration = rollout->Collect(acting.network, acting.scale, kIteration, {kNoise});
  EXPECT_TRUE(iteration.ok()) << iteration.status();
  return *std::move(iteration);
}

void ExpectSameBits(const DirectionRollout::Iteration& got, const DirectionRollout::Iteration& want) {
  for (const auto& [name, tensor] : want.batch.tensors()) EXPECT_TRUE(torch::equal(got.batch[name], tensor)) << name;
  EXPECT_EQ(got.episode_return, want.episode_return);
  EXPECT_EQ(got.episode_length, want.episode_length);
  EXPECT_EQ(got.env_steps, want.env_steps);
  EXPECT_EQ(got.samples, want.samples);
}

// One episode, all written out: one number at a time, in double.
struct Episode {
  double episode_return = 0;
  int64_t steps = 0, samples = 0;
};
Episode PlayLiterally(const v1::RunConfig& config, const Acting& acting, uint64_t direction, double scale,
                      uint64_t env_index) {
  // The perturbed parameters: noise in the order of a direction, layer by layer.
  struct Matrix {
    int64_t outputs, inputs;
    std::vector<double> weight, bias;
  };
  std::vector<Matrix> layers;
  RandomStream noise(config.seed(), RandomPurpose::kDirection, kIteration, direction);
  const bool linear = config.model().policy() == v1::POLICY_KIND_LINEAR;
  for (const auto& [name, parameter] : acting.network.PolicyParameters()) {
    if (name == "log_std") continue;
    if (parameter.dim() == 2) layers.push_back({parameter.size(0), parameter.size(1), {}, {}});
    std::vector<double>& values = parameter.dim() == 2 ? layers.back().weight : layers.back().bias;
    const bool moved = parameter.dim() == 2 || !linear;
    for (int64_t i = 0; i < parameter.numel(); ++i) {
      const double base = double{parameter.data_ptr<float>()[i]};
      values.push_back(moved ? double{static_cast<float>(base + scale * noise.Normal())} : base);
    }
  }
  const auto env = MakeNative(config);
  const EnvSpec& spec = env->spec();
  env->ResetAll(env_index, kIteration);
  std::vector<float> obs(spec.num_agents * spec.obs_size);
  Episode episode;
  std::vector<uint8_t> alive(spec.num_agents, 1);
  while (episode.steps < 40) {
    env->Observe(obs.data());
    std::vector<float> action;
    for (int64_t a = 0; a < spec.num_agents; ++a) {
      std::vector<double> x;
      for (int64_t i = 0; i < spec.obs_size; ++i) {
        const double centred = double{obs[a * spec.obs_size + i]} - acting.scale.mean[i].item<double>();
        x.push_back(std::clamp(centred * acting.scale.inv_std[i].item<double>(), -10.0, 10.0));
      }
      for (size_t layer = 0; layer < layers.size(); ++layer) {
        const Matrix& m = layers[layer];
        std::vector<double> y = m.bias;
        for (int64_t o = 0; o < m.outputs; ++o) {
          for (int64_t i = 0; i < m.inputs; ++i) y[o] += m.weight[o * m.inputs + i] * x[i];
          if (layer + 1 < layers.size()) y[o] = std::tanh(y[o]);
        }
        x = y;
      }
      if (spec.discrete) {
        action.push_back(static_cast<float>(std::max_element(x.begin(), x.end()) - x.begin()));
      } else {
        for (const double value : x) action.push_back(static_cast<float>(value));
      }
    }
    const VectorEnv::StepResult result = env->Step(action.data());
    ++episode.steps;
    for (int64_t a = 0; a < spec.num_agents; ++a) {
      episode.episode_return += double{result.reward[a]};
      episode.samples += result.active[a];
    }
    if (result.terminated[0] != 0 || result.truncated[0] != 0) break;
  }
  return episode;
}

class DirectionRollouts : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  static v1::RunConfig Configured(const std::vector<std::string>& more = {}) {
    std::vector<std::string> settings(GetParam().begin() + 1, GetParam().end());
    settings.insert(settings.end(), more.begin(), more.end());
    return Config(GetParam()[0], settings);
  }
};

TEST_P(DirectionRollouts, ReturnsAreThoseOfTheLiteralOracle) {
  const v1::RunConfig config = Configured();
  const Acting acting(config);
  const DirectionRollout::Iteration got = Collect(MakeRollout(config).get(), acting);
  ASSERT_EQ(got.episode_return.size(), 2u * kDirs * kWorlds);
  int64_t steps = 0, samples = 0, shortest = 40;
  for (int64_t d = 0; d < kDirs; ++d) {
    for (const bool plus : {true, false}) {
      double sum = 0;
      int64_t length = 0;
      for (int64_t e = 0; e < kWorlds; ++e) {
        const Episode want = PlayLiterally(config, acting, d, plus ? kNoise : -kNoise, d * kWorlds + e);
        const size_t at = (plus ? 0 : kDirs * kWorlds) + d * kWorlds + e;
        EXPECT_EQ(got.episode_length[at], want.steps) << "direction " << d << " episode " << e;
        // Choices are the same; velocities are fed back, which makes more of rounding.
        EXPECT_NEAR(got.episode_return[at], want.episode_return, acting.spec.discrete ? 1e-3 : 1e-2)
            << "direction " << d << " episode " << e;
        sum += got.episode_return[at];
        length += want.steps;
        samples += want.samples;
        shortest = std::min(shortest, want.steps);
      }
      const std::string sign = plus ? "plus" : "minus";
      EXPECT_EQ(got.batch["return_" + sign][d].item<double>(), sum);
      EXPECT_EQ(got.batch["steps_" + sign][d].item<int64_t>(), length);
      steps += length;
    }
  }
  EXPECT_EQ(got.env_steps, static_cast<uint64_t>(steps));
  EXPECT_EQ(got.samples, samples);
  EXPECT_EQ(got.batch["obs_count"].item<int64_t>(), samples);
  EXPECT_LT(shortest, 40);  // Some end before the others.
}

TEST_P(DirectionRollouts, NoChunkAndNoNumberOfThreadsChangesABit) {
  const v1::RunConfig all = Configured();
  const Acting acting(all);
  const DirectionRollout::Iteration want = Collect(MakeRollout(all).get(), acting);
  const int threads = at::get_num_threads();
  for (const int chunk : {1, 2, 3}) {
    const v1::RunConfig config = Configured({"directions.dir_chunk=" + std::to_string(chunk)});
    at::set_num_threads(chunk == 3 ? 3 : threads);
    ExpectSameBits(Collect(MakeRollout(config).get(), acting), want);
  }
  at::set_num_threads(threads);
}

TEST_P(DirectionRollouts, OutOfMemoryHalvesTheChunkAndChangesNoBit) {
  const v1::RunConfig config = Configured();
  const Acting acting(config);
  const DirectionRollout::Iteration want = Collect(MakeRollout(config).get(), acting);
  const auto poor = MakeRollout(config);
  std::vector<int64_t> tried;
  poor->SetProbe([&](int64_t directions) {
    tried.push_back(directions);
    // The second piece of three fails, with a piece already played.
    if (directions > 3 || tried == std::vector<int64_t>{6, 3, 3}) throw std::bad_alloc();
  });
  ExpectSameBits(Collect(poor.get(), acting), want);
  EXPECT_THAT(tried, testing::ElementsAre(6, 3, 3, 1, 1, 1, 1, 1, 1));
  EXPECT_EQ(poor->out_of_memory(), 2);
  EXPECT_EQ(poor->dir_chunk(), 1);
  ExpectSameBits(Collect(poor.get(), acting), want);
  EXPECT_EQ(poor->out_of_memory(), 2);  // It has learnt.
}

INSTANTIATE_TEST_SUITE_P(All, DirectionRollouts,
                         testing::Values(std::vector<std::string>{"CartPole-v1"},
                                         std::vector<std::string>{"CartPole-v1", "model.policy=linear"},
                                         std::vector<std::string>{"UavNavigate-v0"},
                                         std::vector<std::string>{"UavNavigate-v0", "env.uav.continuous=true",
                                                                  "model.policy=linear"},
                                         std::vector<std::string>{"UavCover-v0", "model.policy=linear"}));

// Two iterations with other policies and scales, with all directions at once, and one by one, which is not recorded.
void ExpectRecordingsChangeNoBit(const std::string& env_id, torch::Device device, DirectionRollout* recorded) {
  auto plain = DirectionRollout::Make(Config(env_id, {"directions.dir_chunk=1"}), device);
  ASSERT_TRUE(plain.ok()) << plain.status();
  Acting acting(Config(env_id));
  for (uint64_t iteration = 0; iteration < 3; ++iteration) {
    auto want = (*plain)->Collect(acting.network, acting.scale, iteration, {kNoise});
    auto got = recorded->Collect(acting.network, acting.scale, iteration, {kNoise});
    ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
    ExpectSameBits(*got, *want);
    const torch::NoGradGuard no_grad;
    for (const auto& [name, parameter] : acting.network.PolicyParameters()) torch::Tensor(parameter).mul_(1.5);
    acting.scale.mean = acting.scale.mean + 0.2;
  }
}

TEST(DirectionRollout, RecordedStepsChangeNoBit) {
  for (const char* env_id : {"CartPole-v1", "UavNavigate-v0"}) {
    const auto rollout = MakeRollout(Config(env_id));
    int replays = 0;
    rollout->SetRecorder([&] { return std::make_unique<KeepingRecorder>(&replays); });
    ExpectRecordingsChangeNoBit(env_id, torch::kCPU, rollout.get());
    EXPECT_GT(replays, 0);
  }
}

TEST(DirectionRollout, RecordedStepsChangeNoBitOnAGpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "Torch sees no GPU here";
  for (const char* env_id : {"CartPole-v1", "UavNavigate-v0"}) {
    auto rollout = DirectionRollout::Make(Config(env_id), torch::kCUDA);
    ASSERT_TRUE(rollout.ok()) << rollout.status();
    ExpectRecordingsChangeNoBit(env_id, torch::kCUDA, rollout->get());
  }
}

TEST(DirectionRollout, WithoutMemoryForASingleDirectionItSaysSo) {
  const v1::RunConfig config = Config("CartPole-v1");
  const Acting acting(config);
  const auto rollout = MakeRollout(config);
  rollout->SetProbe([](int64_t) { throw std::bad_alloc(); });
  const absl::Status status = rollout->Collect(acting.network, acting.scale, 0, {0.1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("single direction; lower directions.num_envs"));
}

TEST(DirectionRollout, RefusesEnvironmentsWithoutTensorForm) {
  const auto made = DirectionRollout::Make(Config("Pendulum-v1"), torch::kCPU);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("Pendulum-v1 has no such form"));
}

std::unique_ptr<Trainer> Begun(const v1::RunConfig& config) {
  auto trainer = Trainer::Make(config, MakeNative(config)->spec());
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  EXPECT_TRUE((*trainer)->BeginOnDevice(0, kDirs, {}).ok());
  return *std::move(trainer);
}

void Train(Trainer* trainer, uint64_t from, uint64_t to) {
  for (uint64_t iteration = from; iteration < to; ++iteration) {
    const auto collected = trainer->CollectOnDevice(iteration, {kNoise});
    ASSERT_TRUE(collected.ok()) << collected.status();
    const auto stats = trainer->UpdateOnDevice(0, iteration, 0, 0);
    ASSERT_TRUE(stats.ok()) << stats.status();
    EXPECT_EQ(stats->at("out_of_memory"), 0);
    EXPECT_EQ(stats->at("dropped_directions"), 0);
  }
}

TEST(DirectionRollout, TrainingGoesOnFromACheckpointAsIfNothingHadBeen) {
  std::string folder = (std::filesystem::temp_directory_path() / "directions_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  for (const char* algorithm : {"ars.top_dirs=4", "es.step_size=0.02"}) {
    v1::RunConfig config = Config("CartPole-v1");
    if (algorithm[0] == 'e') {
      config.mutable_es()->set_step_size(0.02);
      ApplyDefaults(&config);
    }
    const auto whole = Begun(config);
    Train(whole.get(), 0, 4);
    const auto first = Begun(config);
    Train(first.get(), 0, 2);
    const auto state = first->StateOnDevice();
    ASSERT_TRUE(state.ok());
    EXPECT_TRUE(state->empty());  // Each iteration begins new episodes.
    RunRecord record;
    record.iteration = 2;
    record.env_steps = 1;
    const std::string at = folder + "/" + algorithm;
    ASSERT_TRUE(first->Save(at, record).ok());
    v1::RunConfig chunked = config;
    chunked.mutable_directions()->set_dir_chunk(2);
    const auto second = Begun(chunked);
    ASSERT_TRUE(second->Resume(at).ok());
    Train(second.get(), 2, 4);
    EXPECT_EQ(second->ParametersDigest(), whole->ParametersDigest());
    EXPECT_NE(second->ParametersDigest(), first->ParametersDigest());
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace skein
