// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <new>
#include <stdexcept>

#include "learner/algorithm/ppo/ppo.h"
#include "learner/optimize/memory_limit.h"
#include "tests/learner/ppo_sample.h"
#include "tests/learner/rank_threads.h"

namespace skein {
namespace {

// One network that is differentiated by hand, one by autograd.
std::vector<ActorCriticOptions> Networks() {
  ActorCriticOptions narrow = SampleNetwork(), wide = SampleNetwork(true, true);
  wide.hidden = {520};
  return {narrow, wide};
}

// 128 samples in minibatches of 50 and 78, twice.
v1::RunConfig PiecewiseConfig(uint32_t micro_batch_size = 0) {
  v1::RunConfig config = SampleConfig();
  config.mutable_ppo()->set_minibatch_size(50);
  config.mutable_ppo()->set_adam_epsilon(1e-5);
  config.mutable_ppo()->set_entropy_coefficient(0.01);
  config.mutable_learner()->set_micro_batch_size(micro_batch_size);
  config.mutable_learner()->set_bucket_mb(4);
  return config;
}

void ExpectNearlyEqualModels(const Ppo& a, const Ppo& b) {
  const auto x = a.ModelState(), y = b.ModelState();
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LT((x[i].second - y[i].second).abs().max().item<double>(), 2e-6) << x[i].first;
  }
}

// Memory for `rows` samples at once.
std::function<void(int64_t)> MemoryFor(int64_t rows) {
  return [rows](int64_t samples) {
    if (samples > rows) throw std::bad_alloc();
  };
}

TEST(PpoMemory, MicroBatchesAddUpToTheMinibatch) {
  for (const ActorCriticOptions& network : Networks()) {
    torch::manual_seed(41);
    Ppo whole(PiecewiseConfig(), network, 1), pieces(PiecewiseConfig(11), network, 1);
    std::vector<int64_t> passes;
    pieces.steps().SetMemoryProbe([&](int64_t rows) { passes.push_back(rows); });
    for (int i = 0; i < 2; ++i) {
      const Batch batch = CollectEpisodes(whole, 16, 8);
      const UpdateStats want = Train(whole, batch, 0, i), got = Train(pieces, batch, 0, i);
      for (const auto& [name, value] : want) EXPECT_NEAR(got.at(name), value, 1e-5 + 1e-5 * std::abs(value)) << name;
    }
    ExpectNearlyEqualModels(whole, pieces);
    // 50 = 4 * 11 + 6 and 78 = 7 * 11 + 1, twice in each of two updates.
    EXPECT_EQ(passes.size(), 4u * (5 + 8));
    EXPECT_EQ(std::vector<int64_t>(passes.begin(), passes.begin() + 5), (std::vector<int64_t>{11, 11, 11, 11, 6}));
  }
}

TEST(PpoMemory, OutOfMemoryHalvesThePassesAndComputesTheSame) {
  for (const ActorCriticOptions& network : Networks()) {
    torch::manual_seed(42);
    Ppo whole(PiecewiseConfig(), network, 1), poor(PiecewiseConfig(), network, 1);
    poor.steps().SetMemoryProbe(MemoryFor(20));
    const Batch batch = CollectEpisodes(whole, 16, 8), next = CollectEpisodes(whole, 16, 8);
    EXPECT_EQ(Train(whole, batch, 0, 0).at("out_of_memory"), 0);
    // 50 -> 25 -> 12.
    EXPECT_EQ(Train(poor, batch, 0, 0).at("out_of_memory"), 2);
    Train(whole, next, 0, 1);
    EXPECT_EQ(Train(poor, next, 0, 1).at("out_of_memory"), 0);  // It has learnt.
    ExpectNearlyEqualModels(whole, poor);
  }
}

TEST(PpoMemory, OutOfMemoryWithASingleSampleIsAnError) {
  for (const ActorCriticOptions& network : Networks()) {
    torch::manual_seed(43);
    Ppo ppo(PiecewiseConfig(), network, 1);
    ppo.steps().SetMemoryProbe(MemoryFor(0));
    const auto stats = ppo.Update(CollectEpisodes(ppo, 16, 8), 0, 0);
    EXPECT_EQ(stats.status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST(PpoMemory, OtherExceptionsPassThrough) {
  torch::manual_seed(44);
  Ppo ppo(PiecewiseConfig(), SampleNetwork(), 1);
  ppo.steps().SetMemoryProbe([](int64_t) { throw std::runtime_error("something else"); });
  EXPECT_THROW(ppo.Update(CollectEpisodes(ppo, 16, 8), 0, 0).IgnoreError(), std::runtime_error);
}

// Fails on one rank, in the last pieces too, after others have gone well.
TEST(PpoMemory, OutOfMemoryOnOneRankDisturbsNobody) {
  for (const ActorCriticOptions& network : Networks()) {
    torch::manual_seed(45);
    Ppo whole(PiecewiseConfig(), network, 1);
    std::vector<Batch> batches;
    for (int i = 0; i < 2; ++i) {
      batches.push_back(CollectEpisodes(whole, 16, 8));
      Train(whole, batches.back(), 0, i);
    }
    RunRanks(2, [&](Collective* collective) {
      Ppo ppo(PiecewiseConfig(), network, 1, collective);
      int passes = 0;
      if (collective->rank() == 1) {
        ppo.steps().SetMemoryProbe([&](int64_t rows) {
          if (++passes % 5 == 0 && rows > 2) throw std::bad_alloc();
        });
      }
      double out_of_memory = 0;
      for (int i = 0; i < 2; ++i) {
        const Batch mine = collective->rank() == 0 ? ColumnsOf(batches[i], 0, 3) : ColumnsOf(batches[i], 3, 5);
        const auto stats = ppo.Update(mine, 0, i);
        ASSERT_TRUE(stats.ok()) << stats.status();
        out_of_memory += stats->at("out_of_memory");
      }
      EXPECT_GE(out_of_memory, 3);  // Rank 1's, on both.
      const auto got = ppo.ModelState(), want = whole.ModelState();
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_LT((got[i].second - want[i].second).abs().max().item<double>(), 1e-5) << got[i].first;
      }
    });
  }
}

// When some gradients have already been sent: what has been summed must not count twice.
TEST(PpoMemory, OutOfMemoryInTheMiddleOfTheLastBackwardPassDisturbsNobody) {
  v1::RunConfig config = PiecewiseConfig();
  config.mutable_learner()->set_bucket_mb(1e-6);  // Each parameter is sent for itself.
  const ActorCriticOptions network = Networks()[1];
  torch::manual_seed(46);
  Ppo whole(config, network, 1);
  const Batch batch = CollectEpisodes(whole, 16, 8);
  Train(whole, batch, 0, 0);
  RunRanks(2, [&](Collective* collective) {
    Ppo ppo(config, network, 1, collective);
    int failures = 0;
    torch::Tensor first = ppo.network().AllParameters()[0].second;  // Which backward reaches last.
    first.register_hook([&](torch::Tensor gradient) {
      if (collective->rank() == 1 && failures < 2) {
        ++failures;
        throw std::bad_alloc();
      }
      return gradient;
    });
    const auto stats = ppo.Update(ColumnsOf(batch, 4 * collective->rank(), 4), 0, 0);
    ASSERT_TRUE(stats.ok()) << stats.status();
    EXPECT_EQ(stats->at("out_of_memory"), 2);
    ExpectNearlyEqualModels(ppo, whole);
  });
}

TEST(MemoryLimit, KnowsWhatSaysOutOfMemory) {
  EXPECT_TRUE(IsOutOfMemory(std::bad_alloc()));
  const auto thrown = [](auto failing) {
    try {
      failing();
    } catch (const std::exception& error) {
      return IsOutOfMemory(error);
    }
    return false;
  };
  // As c10's allocator for the CPU throws it, and as CUDA's does.
  EXPECT_TRUE(thrown([] { torch::empty({int64_t{1} << 60}, torch::kUInt8); }));
  EXPECT_TRUE(thrown([] { TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory"); }));
  EXPECT_TRUE(thrown([] { TORCH_CHECK(false, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when creating a handle"); }));
  EXPECT_FALSE(thrown([] { TORCH_CHECK(false, "shapes differ"); }));
  EXPECT_FALSE(thrown([] { throw std::runtime_error("out of memory, says somebody else"); }));
}

TEST(MemoryLimit, BeginsAgainWithHalfAfterAFailure) {
  MemoryLimit limit(0);
  limit.SetProbe(MemoryFor(3));
  std::vector<int64_t> rows;
  std::vector<bool> last;
  MemoryLimit::Work work;
  work.begin = [&] {
    rows.clear();
    last.clear();
    return absl::OkStatus();
  };
  work.piece = [&](int64_t, int64_t count, bool is_last) {
    rows.push_back(count);
    last.push_back(is_last);
  };
  ASSERT_TRUE(limit.Run(7, work).ok());
  EXPECT_EQ(rows, (std::vector<int64_t>{3, 3, 1}));
  EXPECT_EQ(last, (std::vector<bool>{false, false, true}));
  EXPECT_EQ(limit.samples(), 3);
  EXPECT_EQ(limit.out_of_memory(), 1);
  // Rows of several samples: the limit is on samples, and a piece has at least one row.
  limit.SetRowSize(2);
  limit.SetProbe(nullptr);
  ASSERT_TRUE(limit.Run(3, work).ok());
  EXPECT_EQ(rows, (std::vector<int64_t>{1, 1, 1}));
  MemoryLimit ample(12);
  ample.SetRowSize(4);
  ample.SetProbe(MemoryFor(8));
  ASSERT_TRUE(ample.Run(5, work).ok());
  EXPECT_EQ(rows, (std::vector<int64_t>{1, 1, 1, 1, 1}));
  EXPECT_EQ(ample.samples(), 4);
  ample.SetProbe(MemoryFor(3));
  const absl::Status status = ample.Run(5, work);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("with a single sequence of 4 samples"));
  work.begin = [] { return absl::AbortedError("no more"); };
  EXPECT_EQ(limit.Run(7, work).code(), absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace skein
