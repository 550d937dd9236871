// SPDX-License-Identifier: Apache-2.0
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <limits>

#include "learner/algorithm/ppo/ppo.h"
#include "learner/optimize/autocast.h"
#include "learner/optimize/flat_adam.h"
#include "learner/ranks/training_device.h"
#include "tests/learner/ppo_sample.h"

// What updates do differently on a GPU, as far as the CPU can show it.
namespace skein {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

ActorCriticOptions Wide() {
  ActorCriticOptions options = SampleNetwork();
  options.hidden = {520};
  return options;
}

v1::RunConfig Config() {
  v1::RunConfig config = SampleConfig();
  config.mutable_ppo()->set_minibatch_size(50);
  config.mutable_ppo()->set_adam_epsilon(1e-5);
  return config;
}

TEST(PpoOnADevice, EnqueuedStepsEqualThoseThatAreWaitedFor) {
  for (const uint32_t prefetch_depth : {0u, 1u, 3u}) {
    torch::manual_seed(51);
    v1::RunConfig config = Config();
    Ppo waits(config, Wide(), 1);
    config.mutable_learner()->set_prefetch_depth(prefetch_depth);
    config.mutable_learner()->set_micro_batch_size(30);
    Ppo enqueues(config, Wide(), 1);
    enqueues.steps().EnqueueSteps();
    for (int i = 0; i < 3; ++i) {
      Batch batch = CollectEpisodes(waits, 16, 8);
      if (i == 1)
        batch["log_prob"][3][2] = -std::numeric_limits<float>::infinity();  // One step is skipped in each epoch.
      const UpdateStats want = Train(waits, batch, 0, i), got = Train(enqueues, batch, 0, i);
      for (const auto& [name, value] : want) EXPECT_NEAR(got.at(name), value, 1e-4 + 1e-4 * std::abs(value)) << name;
      EXPECT_EQ(got.at("skipped_steps"), want.at("skipped_steps"));
    }
    EXPECT_LT(LargestDifference(waits.ModelState(), enqueues.ModelState()), 1e-5) << prefetch_depth;
    EXPECT_EQ(Find(enqueues.OptimizerState(), "adam.step").item<int64_t>(),
              Find(waits.OptimizerState(), "adam.step").item<int64_t>());
  }
}

TEST(PpoOnADevice, AGpuComputesWhatTheCpuDoes) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "Torch sees no GPU here";
  for (const bool async : {false, true}) {
    for (const uint32_t prefetch_depth : {0u, 2u}) {
      torch::manual_seed(54);
      v1::RunConfig config = Config();
      config.mutable_ppo()->set_minibatch_size(128);  // All rows: a GPU shuffles others into minibatches.
      config.mutable_ppo()->set_normalize_advantages(true);
      config.mutable_ppo()->set_vtrace_rho_max(1);
      config.mutable_ppo()->set_vtrace_c_max(1);
      if (async) config.mutable_sync()->set_mode(v1::SYNC_MODE_ASYNC);
      config.mutable_learner()->set_prefetch_depth(prefetch_depth);
      Ppo cpu(config, SampleNetwork(async), 1), gpu(config, SampleNetwork(async), 1, nullptr, torch::kCUDA);
      for (int i = 0; i < 3; ++i) {
        const Batch batch = CollectEpisodes(cpu, 16, 8);
        const UpdateStats want = Train(cpu, batch, 0, i), got = Train(gpu, batch, 0, i);
        for (const auto& [name, value] : want) {
          EXPECT_NEAR(got.at(name), value, 1e-3 + 1e-3 * std::abs(value)) << name;
        }
      }
      EXPECT_LT(LargestDifference(cpu.ModelState(), gpu.ModelState()), 1e-4);
      Ppo restored(config, SampleNetwork(async), 2, nullptr, torch::kCUDA);
      ASSERT_TRUE(restored.Restore(gpu.ModelState(), gpu.OptimizerState()).ok());
      ExpectEqualStates(restored, gpu);
    }
  }
}

TEST(PpoOnADevice, Bfloat16IsFloat32UpToItsRounding) {
  torch::manual_seed(52);
  v1::RunConfig config = Config();
  Ppo exact(config, SampleNetwork(), 1);
  config.mutable_learner()->set_precision(v1::PRECISION_BF16);
  Ppo rounded(config, SampleNetwork(), 1);
  for (int i = 0; i < 3; ++i) {
    const Batch batch = CollectEpisodes(exact, 16, 8);
    const UpdateStats want = Train(exact, batch, 0, i), got = Train(rounded, batch, 0, i);
    EXPECT_EQ(got.at("gradient_steps"), want.at("gradient_steps"));
    EXPECT_NEAR(got.at("value_loss"), want.at("value_loss"), 0.03 * want.at("value_loss"));
    EXPECT_NEAR(got.at("entropy"), want.at("entropy"), 0.01);
  }
  // 12 steps of at most 3e-3 each; bfloat16 has 8 bits.
  const double difference = LargestDifference(exact.ModelState(), rounded.ModelState());
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 0.012);
  EXPECT_EQ(Find(rounded.ModelState(), "policy.0.weight").scalar_type(), torch::kFloat32);
  EXPECT_EQ(Find(rounded.OptimizerState(), "adam.exp_avg").scalar_type(), torch::kFloat32);
}

TEST(ScopedAutocast, LastsAsLongAsItLives) {
  const torch::Tensor a = torch::ones({2, 2});
  {
    const ScopedAutocast outer(torch::kCPU, torch::kBFloat16);
    EXPECT_EQ(torch::mm(a, a).scalar_type(), torch::kBFloat16);
    { const ScopedAutocast inner(torch::kCPU, torch::kBFloat16); }
    EXPECT_EQ(torch::mm(a, a).scalar_type(), torch::kBFloat16);
  }
  EXPECT_EQ(torch::mm(a, a).scalar_type(), torch::kFloat32);
  const ScopedAutocast none(torch::kCPU, torch::kFloat32);
  EXPECT_EQ(torch::mm(a, a).scalar_type(), torch::kFloat32);
}

TEST(FlatAdam, EnqueuedStepsAreThoseOfStep) {
  torch::manual_seed(53);
  const torch::Tensor start = torch::randn({100});
  const std::vector<torch::Tensor> a = {start.clone().requires_grad_(true)}, b = {start.clone().requires_grad_(true)};
  FlatAdam steps(a, 1e-8), enqueues(b, 1e-8);
  const torch::Tensor lr = torch::full({}, 0.01, torch::kFloat64);
  for (int i = 0; i < 20; ++i) {
    const torch::Tensor gradient = torch::randn({100});
    steps.gradient().copy_(gradient);
    const double norm = steps.GradientNorm();
    steps.Step(0.01, std::min(1.0, 9.5 / (norm + 1e-6)));  // Some norms are above 9.5, others below.
    enqueues.gradient().copy_(gradient);
    const FlatAdam::Enqueued step = enqueues.EnqueueStep(lr, 9.5);
    EXPECT_NEAR(step.norm.item<double>(), norm, 1e-4);
    EXPECT_TRUE(step.taken.item<bool>());
    ASSERT_TRUE(torch::allclose(a[0], b[0], 1e-5, 1e-6)) << i;
    if (i == 10) {  // One that is not finite changes nothing.
      const torch::Tensor before = b[0].detach().clone(), moments = enqueues.exp_avg_sq().clone();
      enqueues.gradient().copy_(gradient)[7] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_FALSE(enqueues.EnqueueStep(lr, 9.5).taken.item<bool>());
      EXPECT_TRUE(torch::equal(before, b[0]));
      EXPECT_TRUE(torch::equal(moments, enqueues.exp_avg_sq()));
    }
  }
  EXPECT_EQ(enqueues.steps(), 20);
  enqueues.Restore(5, steps.exp_avg(), steps.exp_avg_sq());
  EXPECT_EQ(enqueues.steps(), 5);
}

TEST(ParseTrainingDevice, UnderstandsItsForms) {
  EXPECT_EQ(*ParseTrainingDevice("auto", 3, 0), torch::Device(torch::kCPU));
  EXPECT_EQ(*ParseTrainingDevice("auto", 1, 4), torch::Device(torch::kCUDA, 1));
  EXPECT_EQ(*ParseTrainingDevice("auto", 5, 4), torch::Device(torch::kCUDA, 1));  // More ranks than GPUs share them.
  EXPECT_EQ(*ParseTrainingDevice("cpu", 1, 4), torch::Device(torch::kCPU));
  EXPECT_EQ(*ParseTrainingDevice("cuda", 2, 4), torch::Device(torch::kCUDA, 2));
  EXPECT_EQ(*ParseTrainingDevice("cuda:3", 0, 4), torch::Device(torch::kCUDA, 3));
}

TEST(ParseTrainingDevice, SaysWhatWasWrongAndWhatThereIs) {
  for (const char* setting : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "CPU"}) {
    const auto device = ParseTrainingDevice(setting, 0, 4);
    EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument) << setting;
    EXPECT_THAT(std::string(device.status().message()), HasSubstr(std::string("\"") + setting + "\""));
  }
  const auto beyond = ParseTrainingDevice("cuda:4", 0, 4), none = ParseTrainingDevice("cuda", 0, 0);
  EXPECT_EQ(beyond.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(beyond.status().message()), HasSubstr("cuda:0 to cuda:3"));
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("no GPU"));
  EXPECT_THAT(std::string(ParseTrainingDevice("gpu", 0, 0, "train.device").status().message()),
              StartsWith("train.device: got \"gpu\""));
}

}  // namespace
}  // namespace skein
