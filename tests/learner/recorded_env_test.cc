// SPDX-License-Identifier: Apache-2.0
#include "learner/run/recorded_env.h"

#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "env/env_options.h"
#include "learner/optimize/recorded_step.h"
#include "tests/learner/keeping_recorder.h"

namespace skein {
namespace {

// A GPU's, counted.
class CountingRecorder final : public Recorder {
 public:
  explicit CountingRecorder(int* replays) : replays_(*replays) {}

  void WarmUp(const std::function<void()>& work) override { recorder_->WarmUp(work); }
  void Record(const std::function<void()>& work) override { recorder_->Record(work); }
  void Replay() override {
    recorder_->Replay();
    ++replays_;
  }
  void Forget() override { recorder_->Forget(); }

 private:
  int& replays_;
  const std::unique_ptr<Recorder> recorder_ = MakeCudaRecorder(torch::kCUDA);
};

class Counter {
 public:
  explicit Counter(std::unique_ptr<Recorder> recorder, int throws_in_call = 0)
      : step_(
            std::move(recorder),
            [this, throws_in_call] {
              sum = sum + addend;
              if (++calls_ == throws_in_call) throw std::runtime_error("not while it is recorded");
            },
            [this] { return Tensors(); }) {}

  std::vector<torch::Tensor*> Tensors() { return {&sum, &addend}; }
  void Run() { step_.Run(); }
  bool recorded() const { return step_.recorded(); }
  double value() const { return sum.item<double>(); }

  torch::Tensor sum = torch::zeros({}, torch::kFloat64), addend = torch::ones({}, torch::kFloat64);

 private:
  int calls_ = 0;
  RecordedStep step_;
};

TEST(RecordedStep, DoesTheWorkEachTime) {
  int replays = 0;
  Counter counter(std::make_unique<KeepingRecorder>(&replays));
  for (int i = 1; i <= 6; ++i) {
    counter.Run();
    EXPECT_EQ(counter.value(), i);
  }
  EXPECT_EQ(replays, 3);
}

TEST(RecordedStep, TakesInWhatTheCallerHasPutInPlace) {
  int replays = 0;
  Counter counter(std::make_unique<KeepingRecorder>(&replays));
  for (int i = 0; i < 5; ++i) counter.Run();
  const torch::Tensor place = counter.sum;
  counter.sum = torch::full({}, 100, torch::kFloat64);
  counter.addend = torch::full({}, 10, torch::kFloat64);
  counter.Run();
  EXPECT_EQ(counter.value(), 110);
  EXPECT_TRUE(counter.sum.is_same(place));
}

TEST(RecordedStep, RecordsAnewOnceItIsForgotten) {
  torch::Tensor sum = torch::zeros({}, torch::kFloat64);
  double addend = 1;
  int replays = 0;
  RecordedStep step(
      std::make_unique<KeepingRecorder>(&replays), [&] { sum = sum + addend; },
      [&] { return std::vector<torch::Tensor*>{&sum}; });
  for (int i = 0; i < 5; ++i) step.Run();
  EXPECT_TRUE(step.recorded());
  addend = 10;
  step.Forget();
  EXPECT_FALSE(step.recorded());
  for (int i = 0; i < 5; ++i) step.Run();
  EXPECT_EQ(sum.item<double>(), 55);
  EXPECT_EQ(replays, 4);
}

TEST(RecordedStep, GoesOnWithoutARecording) {
  int replays = 0;
  using Fails = KeepingRecorder::Fails;
  Counter none(nullptr), before(std::make_unique<KeepingRecorder>(&replays, Fails::kBeforeTheWork)),
      within(std::make_unique<KeepingRecorder>(&replays, Fails::kInTheWork), /*throws_in_call=*/4);
  for (Counter* counter : {&none, &before, &within}) {
    for (int i = 1; i <= 5; ++i) {
      counter->Run();
      EXPECT_EQ(counter->value(), i);
    }
    EXPECT_FALSE(counter->recorded());
  }
  EXPECT_EQ(replays, 0);
}

// `hidden`: columns of the observations, if any.
std::unique_ptr<TensorEnv> MakeEnv(const std::string& id, torch::Device device, int max_episode_steps = 12,
                                   const std::vector<std::string>& hidden = {}) {
  TensorEnv::Options options;
  options.worlds = 96;  // Enough for UAV worlds to make some of the next maps in each step only.
  options.seed = 3;
  options.max_episode_steps = max_episode_steps;
  options.device = device;
  EnvOptions env_options;
  if (!hidden.empty()) {
    env_options.transforms.push_back({.setting = "env.hide", .kind = TransformOptions::Kind::kHide, .columns = hidden});
  }
  auto env = MakeTensorEnv(id, options, env_options);
  EXPECT_TRUE(env.ok()) << env.status();
  return *std::move(env);
}

void ExpectEqual(const torch::Tensor& a, const torch::Tensor& b, const char* what) {
  EXPECT_TRUE(torch::equal(a, b)) << what;
}

// Both environments are stepped in turn, as a rollout does it, and from a saved state once more.
void ExpectSameSteps(TensorEnv* plain, TensorEnv* recorded, torch::Device device) {
  torch::manual_seed(7);
  const EnvSpec& spec = plain->spec();
  const auto floats = torch::TensorOptions(torch::kFloat32).device(device);
  const auto observe = [&](TensorEnv* env, const torch::Tensor& some) {
    const int64_t count = some.defined() ? some.numel() : env->worlds();
    torch::Tensor obs = torch::empty({count, spec.num_agents, spec.obs_size}, floats);
    env->Observe(obs, some);
    torch::Tensor state = torch::empty({count, spec.global_state_size}, floats);
    env->GlobalState(state, some);
    return torch::cat({obs.view({count, -1}), state}, 1);
  };
  plain->ResetAll();
  recorded->ResetAll();
  torch::Tensor saved;
  const torch::Tensor some = torch::tensor({5, 90}, torch::kInt64).to(device);
  for (int rollout = 0; rollout < 3; ++rollout) {
    plain->BeginRollout();
    recorded->BeginRollout();
    for (int t = 0; t < 16; ++t) {
      const torch::Tensor action =
          spec.discrete ? torch::randint(spec.action_size, {96, spec.num_agents}, torch::kInt64).to(device)
                        : torch::rand({96, spec.num_agents, spec.action_size}).to(device);
      const TensorEnv::StepResult want = plain->Advance(action), got = recorded->Advance(action);
      ExpectEqual(got.reward, want.reward, "reward");
      ExpectEqual(got.ended, want.ended, "ended");
      ExpectEqual(got.active, want.active, "active");
      ExpectEqual(got.episode_return, want.episode_return, "episode_return");
      ExpectEqual(got.episode_length, want.episode_length, "episode_length");
      ExpectEqual(got.episode_metrics, want.episode_metrics, "episode_metrics");
      ASSERT_EQ(got.notes.size(), want.notes.size());
      for (size_t i = 0; i < want.notes.size(); ++i) ExpectEqual(got.notes[i], want.notes[i], "notes");
      ExpectEqual(observe(recorded, some), observe(plain, some), "final observations");
      plain->BeginEpisodes();
      recorded->BeginEpisodes();
      for (size_t i = 0; i < want.notes.size(); ++i) ExpectEqual(got.notes[i], want.notes[i], "notes of before");
      ExpectEqual(observe(recorded, {}), observe(plain, {}), "observations");
    }
    ASSERT_TRUE(plain->EndRollout());
    ASSERT_TRUE(recorded->EndRollout());
    ExpectEqual(recorded->SaveState(), plain->SaveState(), "state");
    if (rollout == 0) saved = plain->SaveState();
    if (rollout != 1) continue;
    ASSERT_TRUE(plain->LoadState(saved).ok());
    ASSERT_TRUE(recorded->LoadState(saved).ok());
    ExpectEqual(observe(recorded, {}), observe(plain, {}), "observations of a loaded state");
  }
}

// Episodes of one step take more maps than are made in a step: rollouts are repeated, with other work than was
// recorded.
void ExpectSameRepetitions(TensorEnv* plain, TensorEnv* recorded, torch::Device device) {
  plain->ResetAll();
  recorded->ResetAll();
  int repetitions = 0;
  for (int rollout = 0; rollout < 3; ++rollout) {
    for (TensorEnv* env : {plain, recorded}) {
      env->BeginRollout();
      do {
        torch::manual_seed(rollout);
        for (int t = 0; t < 8; ++t) {
          const torch::Tensor action = torch::randint(2, {96, env->spec().num_agents}, torch::kInt64).to(device);
          env->Advance(action);
          env->BeginEpisodes();
        }
        ++repetitions;
      } while (!env->EndRollout());
    }
    ExpectEqual(recorded->SaveState(), plain->SaveState(), "state");
  }
  EXPECT_GT(repetitions, 6);
}

class RecordedEnvTest : public testing::TestWithParam<const char*> {};

constexpr int kReplays = 2 * (3 * 16 - 3);  // Of three rollouts, without the warm-ups.

TEST_P(RecordedEnvTest, StepsAsThePlainOne) {
  int replays = 0;
  const auto plain = MakeEnv(GetParam(), torch::kCPU);
  RecordedEnv recorded(MakeEnv(GetParam(), torch::kCPU), torch::kCPU, std::make_unique<KeepingRecorder>(&replays),
                       std::make_unique<KeepingRecorder>(&replays));
  ExpectSameSteps(plain.get(), &recorded, torch::kCPU);
  EXPECT_EQ(replays, kReplays);
}

TEST_P(RecordedEnvTest, StepsAsThePlainOneOnAGpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "Torch sees no GPU here";
  int replays = 0;
  const auto plain = MakeEnv(GetParam(), torch::kCUDA);
  RecordedEnv recorded(MakeEnv(GetParam(), torch::kCUDA), torch::kCUDA, std::make_unique<CountingRecorder>(&replays),
                       std::make_unique<CountingRecorder>(&replays));
  ExpectSameSteps(plain.get(), &recorded, torch::kCUDA);
  EXPECT_EQ(replays, kReplays);
}

TEST(RecordedEnv, StepsAsThePlainOneWithHiddenColumns) {
  const torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  for (const char* const id : {"CartPole-v1", "UavNavigate-v0"}) {
    int replays = 0;
    const auto recorder = [&]() -> std::unique_ptr<Recorder> {
      if (device.is_cuda()) return std::make_unique<CountingRecorder>(&replays);
      return std::make_unique<KeepingRecorder>(&replays);
    };
    const auto plain = MakeEnv(id, device, 12, {"1", "3"});
    RecordedEnv recorded(MakeEnv(id, device, 12, {"1", "3"}), device, recorder(), recorder());
    EXPECT_EQ(recorded.spec().obs_size, MakeEnv(id, device)->spec().obs_size - 2);
    ExpectSameSteps(plain.get(), &recorded, device);
    EXPECT_EQ(replays, kReplays) << id;
  }
}

TEST(RecordedEnv, RecordsAnewWhatARepetitionHasChanged) {
  int replays = 0;
  const auto plain = MakeEnv("UavNavigate-v0", torch::kCPU, 1);
  RecordedEnv recorded(MakeEnv("UavNavigate-v0", torch::kCPU, 1), torch::kCPU,
                       std::make_unique<KeepingRecorder>(&replays), std::make_unique<KeepingRecorder>(&replays));
  ExpectSameRepetitions(plain.get(), &recorded, torch::kCPU);
  EXPECT_GT(replays, 0);
}

TEST(RecordedEnv, RecordsAnewWhatARepetitionHasChangedOnAGpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "Torch sees no GPU here";
  const auto plain = MakeEnv("UavNavigate-v0", torch::kCUDA, 1);
  const auto recorded = RecordOnGpu(MakeEnv("UavNavigate-v0", torch::kCUDA, 1), torch::kCUDA);
  ExpectSameRepetitions(plain.get(), recorded.get(), torch::kCUDA);
}

INSTANTIATE_TEST_SUITE_P(Envs, RecordedEnvTest, testing::Values("CartPole-v1", "UavNavigate-v0", "UavCover-v0"),
                         [](const auto& info) {
                           const std::string id = info.param;
                           return id.substr(0, id.find('-'));
                         });

}  // namespace
}  // namespace skein
