// SPDX-License-Identifier: Apache-2.0
#include <torch/cuda.h>
#include <torch/types.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/number/philox.h"
#include "env/tensor/tensor_philox.h"
#include "env/tensor/uav/tensor_world.h"
#include "env/vector_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr uint64_t kFirstEnv = 7;
constexpr uint64_t kSeed = (uint64_t{3} << 32) | 11;

struct Case {
  std::string name;
  UavTask task = UavTask::kNavigate;
  UavOptions uav;
  int envs = 16;
  int limit = 0;
  int64_t episodes = 100;  // To be played at least.
  torch::Device device = torch::kCPU;
};

UavOptions Uavs(int uavs, int obstacles, int size, int sensing_radius, int neighbours) {
  UavOptions options;
  options.uavs = uavs;
  options.obstacles = obstacles;
  options.size = size;
  options.sensing_radius = sensing_radius;
  options.neighbours = neighbours;
  return options;
}

std::unique_ptr<VectorEnv> MakeNative(const Case& test_case) {
  VectorEnv::Options options;
  options.env_id = test_case.task == UavTask::kNavigate ? "UavNavigate-v0" : "UavCover-v0";
  options.size = test_case.envs;
  options.seed = kSeed;
  options.max_episode_steps = test_case.limit;
  options.env.uav = test_case.uav;
  auto made = VectorEnv::Make(options);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

TensorWorld::Options TensorOptionsOf(const Case& test_case) {
  TensorWorld::Options options;
  options.task = test_case.task;
  options.uav = test_case.uav;
  options.worlds = test_case.envs;
  options.seed = kSeed;
  options.first_env = kFirstEnv;
  options.max_episode_steps = test_case.limit;
  options.device = test_case.device;
  return options;
}

std::unique_ptr<TensorWorld> MakeTensor(const TensorWorld::Options& options) {
  auto made = TensorWorld::Make(options);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

// Actions of one step, for both forms; continuous ones beyond their bounds too.
torch::Tensor RandomAction(const EnvSpec& spec, int64_t envs, RandomStream* random) {
  if (spec.discrete) {
    torch::Tensor action = torch::empty({envs, spec.num_agents}, torch::kInt64);
    for (int64_t i = 0; i < action.numel(); ++i) {
      action.data_ptr<int64_t>()[i] = random->Below(static_cast<uint32_t>(spec.action_size));
    }
    return action;
  }
  torch::Tensor action = torch::empty({envs, spec.num_agents, spec.action_size});
  for (int64_t i = 0; i < action.numel(); ++i) {
    action.data_ptr<float>()[i] = static_cast<float>(random->Uniform(-1.2, 1.2));
  }
  action.data_ptr<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  return action;
}

// Half of the UAVs that are in `native` fly towards their targets, so that some arrive.
void SendSomeToTargets(const Case& test_case, const VectorEnv& native, RandomStream* random, torch::Tensor* action) {
  if (test_case.task == UavTask::kCover) return;
  const EnvSpec& spec = native.spec();
  const int direction = MakeUavLayout(test_case.task, test_case.uav).obs_target + 2;
  std::vector<float> obs(static_cast<size_t>(native.size()) * spec.num_agents * spec.obs_size);
  native.Observe(obs.data());
  for (int64_t i = 0; i < int64_t{native.size()} * spec.num_agents; ++i) {
    if (random->Below(2) == 0) continue;
    const float x = obs[i * spec.obs_size + direction], y = obs[i * spec.obs_size + direction + 1];
    if (spec.discrete) {
      const auto eighth = static_cast<int64_t>(std::lround(std::atan2(y, x) / (M_PI / 4)));
      action->data_ptr<int64_t>()[i] = 1 + (eighth + 8) % 8;
    } else {
      action->data_ptr<float>()[2 * i] = x;
      action->data_ptr<float>()[2 * i + 1] = y;
    }
  }
}

template <typename Value>
torch::Tensor Copied(const Value* values, std::vector<int64_t> shape, torch::ScalarType type) {
  return torch::from_blob(const_cast<Value*>(values), shape, type).clone();
}

bool Near(const torch::Tensor& got, const torch::Tensor& want) {
  return got.sizes() == want.sizes() && torch::allclose(got, want.to(got.scalar_type()), 1e-5, 1e-5);
}

bool Same(const torch::Tensor& got, const torch::Tensor& want) {
  return torch::equal(got.to(torch::kInt64), want.to(torch::kInt64));
}

TensorEnv::StepResult OnCpu(TensorEnv::StepResult result) {
  for (torch::Tensor* tensor : {&result.reward, &result.terminated, &result.truncated, &result.active,
                                &result.agent_terminated, &result.ended, &result.episode_return, &result.episode_length,
                                &result.episode_metrics, &result.final_obs, &result.final_state}) {
    *tensor = tensor->cpu();
  }
  for (torch::Tensor& note : result.notes) note = note.cpu();
  return result;
}

// Both forms, side by side.
class Twins {
 public:
  Twins(const Case& test_case, std::unique_ptr<VectorEnv> native, std::unique_ptr<TensorWorld> tensor)
      : E_(test_case.envs),
        device_(test_case.device),
        native_(std::move(native)),
        tensor_(std::move(tensor)),
        spec_(native_->spec()) {}

  VectorEnv& native() { return *native_; }
  TensorWorld& tensor() { return *tensor_; }
  int64_t arrived() const { return arrived_; }  // In episodes that ended.

  torch::Tensor NativeState() const {
    torch::Tensor state = torch::empty({E_, native_->state_size()}, torch::kFloat64);
    native_->SaveState(state.data_ptr<double>());
    return state;
  }

  void ExpectSameView() const {
    const int64_t A = spec_.num_agents, O = spec_.obs_size, G = spec_.global_state_size;
    torch::Tensor obs = torch::empty({E_, A, O}, device_), want_obs = torch::empty({E_, A, O});
    torch::Tensor state = torch::empty({E_, G}, device_), want_state = torch::empty({E_, G});
    tensor_->Observe(obs);
    native_->Observe(want_obs.data_ptr<float>());
    tensor_->GlobalState(state);
    native_->GlobalState(want_state.data_ptr<float>());
    obs = obs.cpu();
    state = state.cpu();
    ASSERT_TRUE(Near(obs, want_obs)) << (obs - want_obs).abs().amax({0, 1});
    ASSERT_TRUE(Near(state, want_state)) << (state - want_state).abs().amax({0});
  }

  // One step of both; returns how many episodes ended.
  int64_t Step(const torch::Tensor& action) {
    const int64_t A = spec_.num_agents, O = spec_.obs_size, G = spec_.global_state_size;
    const auto P = static_cast<int64_t>(spec_.episode_metrics.size());
    std::vector<uint64_t> episode;
    for (int e = 0; e < E_; ++e) episode.push_back(native_->episode(e));
    const TensorEnv::StepResult got = OnCpu(tensor_->Step(action.to(device_)));
    const torch::Tensor as_float = action.to(torch::kFloat32).contiguous();
    const VectorEnv::StepResult want = native_->Step(as_float.data_ptr<float>());
    const auto flags = [&](const uint8_t* values, std::vector<int64_t> shape) {
      return Copied(values, shape, torch::kUInt8);
    };
    EXPECT_TRUE(Same(got.terminated, flags(want.terminated, {E_})));
    EXPECT_TRUE(Same(got.truncated, flags(want.truncated, {E_})));
    EXPECT_TRUE(Same(got.active, flags(want.active, {E_, A})));
    EXPECT_TRUE(Same(got.agent_terminated, flags(want.agent_terminated, {E_, A})));
    EXPECT_TRUE(Near(got.reward, Copied(want.reward, {E_, A}, torch::kFloat32)));
    EXPECT_TRUE(torch::equal(got.ended, torch::logical_or(got.terminated, got.truncated)));
    const torch::Tensor final_obs = Copied(want.final_obs, {E_, A, O}, torch::kFloat32);
    const torch::Tensor final_state = Copied(want.final_state, {E_, G}, torch::kFloat32);
    const torch::Tensor metrics = Copied(want.episode_metrics, {E_, P}, torch::kFloat32);
    int64_t ended = 0;
    for (int e = 0; e < E_; ++e) {
      if (!got.ended[e].item<bool>()) continue;
      ++ended;
      EXPECT_EQ(got.notes[0][e].item<int64_t>(), static_cast<int64_t>(episode[e]));
      EXPECT_EQ(got.episode_length[e].item<int64_t>(), want.episode_length[e]);
      EXPECT_NEAR(got.episode_return[e].item<double>(), want.episode_return[e],
                  1e-5 * std::max(1.0, std::abs(want.episode_return[e])));
      EXPECT_TRUE(Near(got.final_obs[e], final_obs[e]));
      EXPECT_TRUE(Near(got.final_state[e], final_state[e]));
      arrived_ += (got.notes[1][e] == static_cast<int64_t>(UavStatus::kArrived)).sum().item<int64_t>();
      torch::Tensor got_metrics = got.episode_metrics[e].clone();
      tensor_->FinishMetrics(kFirstEnv + e, {got.notes[0][e], got.notes[1][e], got.notes[2][e]},
                             got_metrics.data_ptr<float>());
      EXPECT_TRUE(Near(got_metrics, metrics[e])) << got_metrics << metrics[e];
    }
    return ended;
  }

 private:
  const int64_t E_;
  const torch::Device device_;
  const std::unique_ptr<VectorEnv> native_;
  const std::unique_ptr<TensorWorld> tensor_;
  const EnvSpec spec_;
  int64_t arrived_ = 0;
};

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"one_uav", UavTask::kNavigate, Uavs(1, 3, 4, 1, 0), 32, 15, 250},
      {"more_neighbours_than_uavs", UavTask::kNavigate, Uavs(3, 5, 6, 2, 7), 32, 30, 200},
      {"velocities", UavTask::kNavigate, Uavs(4, 6, 7, 3, 2), 24, 25, 150},
      {"cover", UavTask::kCover, Uavs(3, 4, 5, 1, 2), 32, 40, 200},
      {"cover_velocities", UavTask::kCover, Uavs(2, 0, 3, 2, 1), 24, 0, 100},
      {"as_it_comes", UavTask::kNavigate, Uavs(10, 40, 20, 3, 4), 32, 60, 100},
      {"fast_and_thin", UavTask::kNavigate, Uavs(6, 14, 8, 1, 2), 32, 25, 200},
      {"fast_and_thick", UavTask::kCover, Uavs(5, 8, 9, 2, 2), 32, 25, 200},
  };
  cases[1].uav.speed = 0.7;
  cases[1].uav.radius = 0.33;
  cases[2].uav.continuous = true;
  cases[2].uav.team_share = 1;
  cases[3].uav.radius = 0.05;
  cases[4].uav.continuous = true;
  cases[4].uav.speed = 1;
  cases[4].uav.radius = 0.1;
  cases[6].uav.speed = cases[7].uav.speed = 1;
  cases[6].uav.radius = 0.001;
  cases[7].uav.radius = 0.49;
  cases[7].uav.continuous = true;
  if (!torch::cuda::is_available()) return cases;
  for (size_t i = 0, on_cpu = cases.size(); i < on_cpu; ++i) {
    cases.push_back(cases[i]);
    cases.back().name += "_on_a_gpu";
    cases.back().device = torch::kCUDA;
  }
  return cases;
}

class UavForms : public testing::TestWithParam<Case> {};

TEST_P(UavForms, AgreeInEveryStepOfRandomEpisodes) {
  const Case& test_case = GetParam();
  Twins twins(test_case, MakeNative(test_case), MakeTensor(TensorOptionsOf(test_case)));
  twins.native().ResetAll(kFirstEnv);
  twins.tensor().ResetAll();
  twins.ExpectSameView();
  RandomStream random(5, RandomPurpose::kAction, 0, 0);
  for (int64_t episodes = 0; episodes < test_case.episodes;) {
    torch::Tensor action = RandomAction(twins.native().spec(), test_case.envs, &random);
    SendSomeToTargets(test_case, twins.native(), &random, &action);
    episodes += twins.Step(action);
    twins.ExpectSameView();
    if (HasFailure()) break;
  }
  EXPECT_TRUE(Near(twins.tensor().SaveState(), twins.NativeState()));
  if (test_case.task == UavTask::kNavigate) {
    EXPECT_GT(twins.arrived(), 10);
  }
}

TEST_P(UavForms, GoOnFromEachOthersState) {
  const Case& test_case = GetParam();
  Twins twins(test_case, MakeNative(test_case), MakeTensor(TensorOptionsOf(test_case)));
  twins.native().ResetAll(kFirstEnv);
  RandomStream random(6, RandomPurpose::kAction, 0, 0);
  const auto action = [&] { return RandomAction(twins.native().spec(), test_case.envs, &random); };
  for (int t = 0; t < 7; ++t) twins.native().Step(action().to(torch::kFloat32).data_ptr<float>());
  ASSERT_TRUE(twins.tensor().LoadState(twins.NativeState()).ok());
  EXPECT_TRUE(torch::equal(twins.tensor().SaveState(), twins.NativeState()));
  twins.ExpectSameView();
  for (int t = 0; t < 20; ++t) twins.Step(action());
  const torch::Tensor state = twins.tensor().SaveState();
  ASSERT_TRUE(twins.native().LoadState(kFirstEnv, state.data_ptr<double>()).ok());
  for (int t = 0; t < 20; ++t) {
    twins.Step(action());
    twins.ExpectSameView();
  }
}

INSTANTIATE_TEST_SUITE_P(All, UavForms, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

TEST(TensorPhilox, HasTheWordsOfRandomStreams) {
  const TensorPhilox philox(kSeed, RandomPurpose::kEvaluation, torch::kCPU);
  const torch::Tensor a = torch::tensor(std::vector<int64_t>{0, 12, 4294967295});
  const torch::Tensor b = torch::tensor(std::vector<int64_t>{4294967295, 0, 34});
  const torch::Tensor words = philox.Words(a, b, 3, 5);
  ASSERT_EQ(words.sizes(), (std::vector<int64_t>{3, 20}));
  for (int64_t row = 0; row < 3; ++row) {
    RandomStream stream(kSeed, RandomPurpose::kEvaluation, a[row].item<int64_t>(), b[row].item<int64_t>(), 3);
    for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(words[row][i].item<int64_t>(), int64_t{stream.NextUint32()});
  }
}

// Episodes of a single UAV between walls end all the time: one map a step is not enough for 64 worlds.
TEST(TensorWorld, SaysThatAMapWasMissedAndRepeatsTheStepsRight) {
  Case test_case{"tiny", UavTask::kNavigate, Uavs(1, 1, 2, 1, 0), 64, 5};
  TensorWorld::Options options = TensorOptionsOf(test_case);
  options.prepared_per_step = 1;
  Twins twins(test_case, MakeNative(test_case), MakeTensor(options));
  TensorWorld& world = twins.tensor();
  world.ResetAll();
  EXPECT_FALSE(world.missed());
  const TensorWorld::Snapshot before = world.Save();
  RandomStream random(7, RandomPurpose::kAction, 0, 0);
  for (int t = 0; t < 8; ++t) world.Step(RandomAction(world.spec(), test_case.envs, &random));
  EXPECT_TRUE(world.missed());

  world.Restore(before);
  world.PrepareAtOnce(1000);
  EXPECT_EQ(world.prepared_per_step(), 64);
  twins.native().ResetAll(kFirstEnv);
  for (int t = 0; t < 20; ++t) {
    twins.Step(RandomAction(world.spec(), test_case.envs, &random));
    twins.ExpectSameView();
  }
  EXPECT_FALSE(world.missed());
}

// Of 32 worlds 8 maps a step are made: those that are needed at once first.
TEST(TensorWorld, AFewMapsAStepAreEnough) {
  Case test_case{"few", UavTask::kNavigate, Uavs(4, 6, 7, 2, 2), 32, 30};
  TensorWorld::Options options = TensorOptionsOf(test_case);
  options.prepared_per_step = 8;
  Twins twins(test_case, MakeNative(test_case), MakeTensor(options));
  twins.native().ResetAll(kFirstEnv);
  twins.tensor().ResetAll();
  RandomStream random(8, RandomPurpose::kAction, 0, 0);
  for (int t = 0; t < 60; ++t) {
    twins.Step(RandomAction(twins.native().spec(), test_case.envs, &random));
    twins.ExpectSameView();
  }
  EXPECT_FALSE(twins.tensor().missed());
}

TEST(TensorWorld, ObservesSomeWorldsAsAll) {
  Case test_case{"some", UavTask::kCover, Uavs(3, 4, 5, 1, 2), 6, 40};
  const auto world = MakeTensor(TensorOptionsOf(test_case));
  world->ResetAll();
  const EnvSpec& spec = world->spec();
  torch::Tensor obs = torch::empty({6, 3, spec.obs_size}), state = torch::empty({6, spec.global_state_size});
  world->Observe(obs);
  world->GlobalState(state);
  const torch::Tensor some = torch::tensor(std::vector<int64_t>{4, 1});
  torch::Tensor some_obs = torch::empty({2, 3, spec.obs_size}), some_state = torch::empty({2, spec.global_state_size});
  world->Observe(some_obs, some);
  world->GlobalState(some_state, some);
  EXPECT_TRUE(torch::equal(some_obs, obs.index_select(0, some)));
  EXPECT_TRUE(torch::equal(some_state, state.index_select(0, some)));
  EXPECT_EQ(world->Steps(), std::vector<int64_t>(6, 0));
}

TEST(TensorWorld, RefusesBadOptions) {
  Case test_case{"bad", UavTask::kNavigate, Uavs(2, 3, 5, 1, 1), 4, 40};
  const auto refusal = [](const TensorWorld::Options& options) {
    const auto made = TensorWorld::Make(options);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(made.status().message());
  };
  TensorWorld::Options options = TensorOptionsOf(test_case);
  options.worlds = 0;
  EXPECT_THAT(refusal(options), HasSubstr("worlds: got 0"));
  options = TensorOptionsOf(test_case);
  options.max_episode_steps = -1;
  EXPECT_THAT(refusal(options), HasSubstr("max_episode_steps: got -1"));
  options = TensorOptionsOf(test_case);
  options.first_env = (uint64_t{1} << 32) - 3;
  EXPECT_THAT(refusal(options), HasSubstr("first_env: got 4294967293, want at most 4294967292"));
  options = TensorOptionsOf(test_case);
  options.uav.uavs = 0;
  EXPECT_THAT(refusal(options), HasSubstr("env.uav.uavs"));
}

TEST(TensorWorld, RefusesBadStatesAndKeepsItsOwn) {
  Case test_case{"bad", UavTask::kNavigate, Uavs(2, 3, 5, 1, 1), 4, 40};
  const auto world = MakeTensor(TensorOptionsOf(test_case));
  world->ResetAll();
  const torch::Tensor good = world->SaveState();
  const auto refusal = [&](int64_t number, double value) {
    torch::Tensor bad = good.clone();
    bad[2][number] = value;
    return std::string(world->LoadState(bad).message());
  };
  EXPECT_THAT(refusal(5, std::nan("")), HasSubstr("environment 2 of the state: number 5 is nan"));
  EXPECT_THAT(refusal(0, 1.5), HasSubstr("episode 1.5"));
  EXPECT_THAT(refusal(1, 40), HasSubstr("step 40"));
  EXPECT_THAT(std::string(world->LoadState(good.narrow(0, 0, 3)).message()), HasSubstr("want float64 [4, "));
  EXPECT_TRUE(torch::equal(world->SaveState(), good));
}

}  // namespace
}  // namespace skein
