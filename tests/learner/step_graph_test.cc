// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/step_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "learner/algorithm/ppo/ppo.h"
#include "learner/optimize/memory_limit.h"
#include "tests/learner/ppo_sample.h"

namespace skein {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Calls {
  int warm_ups = 0, recordings = 0, replays = 0;
};

// Keeps the work itself and does it again; throws in place of the replay that follows so many others.
class FakeRecorder final : public Recorder {
 public:
  explicit FakeRecorder(Calls* calls, int replays_until_failure = -1) : calls_(*calls), left_(replays_until_failure) {}

  void WarmUp(const std::function<void()>& work) override {
    ++calls_.warm_ups;
    work();
  }
  void Record(const std::function<void()>& work) override {
    ++calls_.recordings;
    recorded_ = work;
  }
  void Replay() override {
    if (left_-- == 0) throw std::runtime_error("the device says no");
    ++calls_.replays;
    recorded_();
  }
  void Forget() override { recorded_ = nullptr; }

 private:
  Calls& calls_;
  int left_;
  std::function<void()> recorded_;
};

// Does the work while it is recorded, as a device's recorder does its host code.
class EagerRecorder final : public Recorder {
 public:
  explicit EagerRecorder(bool* recording) : recording_(*recording) {}
  void WarmUp(const std::function<void()>& work) override { work(); }
  void Record(const std::function<void()>& work) override {
    recording_ = true;
    work();
  }
  void Replay() override { FAIL() << "nothing was recorded"; }
  void Forget() override {}

 private:
  bool& recording_;
};

ActorCriticOptions Wide(bool discrete = false) {
  ActorCriticOptions options = SampleNetwork(discrete);
  options.hidden = {520};  // Autograd.
  return options;
}

// 128 samples make five minibatches of 20 and one of 28, twice an update. Everything that schedules change does.
v1::RunConfig GraphConfig() {
  v1::RunConfig config = SampleConfig();
  v1::PpoConfig& ppo = *config.mutable_ppo();
  ppo.set_minibatch_size(20);
  ppo.set_adam_epsilon(1e-5);
  ppo.set_entropy_coefficient(0.02);
  ppo.set_value_clip(0.3);
  ppo.set_lr_schedule(v1::LEARNING_RATE_SCHEDULE_LINEAR);
  ppo.set_clip_schedule(v1::SCHEDULE_LINEAR);
  ppo.set_entropy_schedule(v1::SCHEDULE_LINEAR);
  return config;
}

// Up to rounding (of the coefficients' gradients; LibTorch 1.13 has them in double precision if they are numbers of the
// host): both after a few updates on the same batches, of `columns` columns each.
void ExpectEqualTraining(Ppo& plain, Ppo& graph, const std::vector<int64_t>& columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    Batch batch = CollectEpisodes(plain, 16, columns[i]);
    if (i == 1)
      batch["log_prob"][3][2] = -std::numeric_limits<float>::infinity();  // One step is skipped in each epoch.
    const double progress = 0.3 * static_cast<double>(i);
    const UpdateStats want = Train(plain, batch, progress, i), got = Train(graph, batch, progress, i);
    for (const auto& [name, value] : want) EXPECT_NEAR(got.at(name), value, 1e-5 + 1e-5 * std::abs(value)) << name;
    EXPECT_EQ(got.at("gradient_steps"), want.at("gradient_steps"));
    EXPECT_EQ(got.at("skipped_steps"), want.at("skipped_steps"));
    EXPECT_EQ(got.at("out_of_memory"), 0);
    EXPECT_LT(LargestDifference(plain.ModelState(), graph.ModelState()), 1e-6) << i;
    EXPECT_TRUE(torch::equal(Find(plain.OptimizerState(), "adam.step"), Find(graph.OptimizerState(), "adam.step")));
  }
}

TEST(StepGraph, ReplayedStepsEqualThoseThatAreNotRecorded) {
  for (const bool discrete : {false, true}) {
    for (const uint32_t micro_batch_size : {0u, 7u}) {
      SCOPED_TRACE(testing::Message() << (discrete ? "discrete" : "continuous") << ", micro-batches of "
                                      << micro_batch_size);
      torch::manual_seed(61);
      v1::RunConfig config = GraphConfig();
      config.mutable_learner()->set_micro_batch_size(micro_batch_size);
      Ppo plain(config, Wide(discrete), 1), graph(config, Wide(discrete), 1);
      Calls calls;
      plain.steps().EnqueueSteps();
      graph.steps().EnqueueSteps();
      graph.steps().RecordSteps(std::make_unique<FakeRecorder>(&calls));
      ExpectEqualTraining(plain, graph, {8, 8, 8});
      // 3 updates of 2 epochs with 5 minibatches of 20: 30 steps, of which 3 warm up.
      EXPECT_EQ(calls.warm_ups, 3);
      EXPECT_EQ(calls.recordings, 1);
      EXPECT_EQ(calls.replays, 27);
    }
  }
}

TEST(StepGraph, AnotherShapeIsRecordedAnew) {
  torch::manual_seed(62);
  Ppo plain(GraphConfig(), Wide(), 1), graph(GraphConfig(), Wide(), 1);
  Calls calls;
  plain.steps().EnqueueSteps();
  graph.steps().EnqueueSteps();
  graph.steps().RecordSteps(std::make_unique<FakeRecorder>(&calls));
  // 128 samples: 5 of 20 and one of 28, four times. 16 are one minibatch, four times. 96: 3 of 20 and one of 36.
  ExpectEqualTraining(plain, graph, {8, 8, 1, 1, 6, 6});
  EXPECT_EQ(calls.warm_ups, 9);
  EXPECT_EQ(calls.recordings, 3);
  // 20 steps of the first shape, 4 of the second, 12 of the third; each shape's first 3 warm up.
  EXPECT_EQ(calls.replays, 17 + 1 + 9);
}

TEST(StepGraph, TrainingGoesOnWithoutWhatFails) {
  for (const int replays : {0, 9}) {
    torch::manual_seed(63);
    Ppo plain(GraphConfig(), Wide(), 1), graph(GraphConfig(), Wide(), 1);
    Calls calls;
    plain.steps().EnqueueSteps();
    graph.steps().EnqueueSteps();
    graph.steps().RecordSteps(std::make_unique<FakeRecorder>(&calls, replays));
    ExpectEqualTraining(plain, graph, {8, 8});
    EXPECT_EQ(calls.recordings, 1);
    EXPECT_EQ(calls.replays, replays);
  }
}

TEST(StepGraph, LackOfMemoryWhileRecordingIsNoneOfTraining) {
  torch::manual_seed(64);
  Ppo plain(GraphConfig(), Wide(), 1), graph(GraphConfig(), Wide(), 1);
  bool recording = false;
  int failures = 0;
  plain.steps().EnqueueSteps();
  graph.steps().EnqueueSteps();
  graph.steps().RecordSteps(std::make_unique<EagerRecorder>(&recording));
  graph.steps().SetMemoryProbe([&](int64_t) {
    if (!std::exchange(recording, false)) return;
    ++failures;
    throw std::bad_alloc();
  });
  ExpectEqualTraining(plain, graph, {8, 8});  // Figure out_of_memory included.
  EXPECT_EQ(failures, 1);
}

TEST(StepGraph, StepsReadTheSameMemoryEachTime) {
  const auto column = [](float value) { return torch::full({4}, value); };
  const auto samples = [&](float value) {
    Minibatch some;
    some["obs"] = torch::full({4, 2}, value);
    for (const char* name : {"action", "log_prob", "advantage"}) some[name] = column(value);
    return some;
  };
  std::vector<const void*> memory;
  std::vector<double> seen;
  Calls calls;
  StepGraph graph(std::make_unique<FakeRecorder>(&calls), [&](const StepGraph::Inputs& in, bool) {
    memory.push_back(in.samples["obs"].data_ptr());
    seen.push_back(in.samples["obs"].index_select(0, in.index).sum().item<double>() + in.lr.item<double>() +
                   in.scheduled[1].item<double>());
    return absl::OkStatus();
  });
  const torch::Tensor index = torch::tensor({1, 3}, torch::kInt64);
  for (int i = 0; i < 6; ++i) {
    graph.Load(samples(static_cast<float>(i)), 2, 0.5, {0.75, 1.25});
    ASSERT_TRUE(*graph.Run(index));
  }
  EXPECT_FALSE(*graph.Run(torch::tensor({1, 3, 0}, torch::kInt64)));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(memory[i], memory[0]);
    EXPECT_EQ(seen[i], 4 * i + 0.5 + 1.25);  // Two rows of two.
  }
}

TEST(StepGraph, ErrorsWhileWarmingUpAreTheSteps) {
  Calls calls;
  StepGraph graph(std::make_unique<FakeRecorder>(&calls),
                  [](const StepGraph::Inputs&, bool) { return absl::ResourceExhaustedError("too large"); });
  Minibatch one;
  one["obs"] = torch::zeros({1, 2});
  graph.Load(one, 1, 0, {});
  EXPECT_EQ(graph.Run(torch::zeros({1}, torch::kInt64)).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(WhyNotRecorded, NamesWhatIsInTheWay) {
  v1::LearnerConfig config;
  EXPECT_THAT(WhyNotRecorded(config, false, torch::kCUDA), IsEmpty());
  EXPECT_THAT(WhyNotRecorded(config, false, torch::kCPU), HasSubstr("cpu"));
  EXPECT_THAT(WhyNotRecorded(config, true, torch::kCUDA), HasSubstr("several ranks"));
  config.set_prefetch_depth(1);
  EXPECT_THAT(WhyNotRecorded(config, false, torch::kCUDA), HasSubstr("learner.prefetch_depth"));
}

TEST(WhyNotRecorded, TheSettingIsIgnoredOnTheCpu) {
  torch::manual_seed(65);
  v1::RunConfig config = GraphConfig();
  Ppo plain(config, Wide(), 1);
  config.mutable_learner()->set_cuda_graph(true);
  Ppo graph(config, Wide(), 1);
  ExpectEqualTraining(plain, graph, {8, 8});
}

TEST(MemoryLimit, OneGoLetsLackOfMemoryPassThrough) {
  MemoryLimit limit(4);
  limit.SetProbe([](int64_t rows) {
    if (rows == 3) throw std::bad_alloc();
  });
  MemoryLimit::Work work{[] { return absl::OkStatus(); }, [](int64_t, int64_t, bool) {}};
  EXPECT_THROW(limit.RunOnce(7, work).IgnoreError(), std::bad_alloc);
  EXPECT_TRUE(limit.RunOnce(8, work).ok());
  EXPECT_EQ(limit.samples(), 4);
  EXPECT_EQ(limit.out_of_memory(), 0);
}

TEST(StepGraph, AGpuReplaysWhatItComputesWithout) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "Torch sees no GPU here";
  for (const bool discrete : {false, true}) {
    for (const v1::Precision precision : {v1::PRECISION_FP32, v1::PRECISION_BF16}) {
      torch::manual_seed(66);
      v1::RunConfig config = GraphConfig();
      config.mutable_learner()->set_precision(precision);
      Ppo plain(config, Wide(discrete), 1, nullptr, torch::kCUDA);
      config.mutable_learner()->set_cuda_graph(true);
      Ppo graph(config, Wide(discrete), 1, nullptr, torch::kCUDA);
      for (const int64_t columns : {8, 8, 8, 6, 6}) {
        const Batch batch = CollectEpisodes(Ppo(config, Wide(discrete), 1), 16, columns);
        const UpdateStats want = Train(plain, batch, 0.3, 0), got = Train(graph, batch, 0.3, 0);
        for (const auto& [name, value] : want) {
          EXPECT_NEAR(got.at(name), value, 1e-4 + 1e-4 * std::abs(value)) << name;
        }
      }
      EXPECT_LT(LargestDifference(plain.ModelState(), graph.ModelState()), 1e-5);
      EXPECT_TRUE(graph.steps().records()) << "recording failed, see the log";
    }
  }
}

}  // namespace
}  // namespace skein
