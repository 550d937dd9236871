// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "learner/algorithm/ppo/ppo.h"
#include "learner/optimize/across_ranks.h"
#include "tests/learner/ppo_sample.h"
#include "tests/learner/rank_threads.h"

namespace skein {
namespace {

using ::testing::HasSubstr;
using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

constexpr uint64_t kSeed = 3;

// What a single rank makes of some iterations, collected with its own policy.
struct Reference {
  std::vector<Batch> batches;
  std::vector<UpdateStats> stats;
  NamedTensors model, optimizer;
};

Reference TrainAlone(const v1::RunConfig& config, const ActorCriticOptions& network, int64_t columns, int updates,
                     bool absurd = false) {
  constexpr int64_t kAgents = 2;  // Of a team.
  at::set_num_threads(1);
  torch::manual_seed(31);
  Reference reference;
  Ppo ppo(config, network, kSeed);
  for (int i = 0; i < updates; ++i) {
    Batch batch = network.critic_input_size > 0 ? CollectTeams(ppo, 16, columns / kAgents, kAgents)
                                                : CollectEpisodes(ppo, 16, columns);
    // Something to learn, so that gradients are not all noise.
    if (!network.discrete) batch["reward"] -= (batch["action"] - 0.5).square().sum(2);
    batch["reward"] *= 3;
    if (absurd && i == 2) {
      batch["obs"][3][columns - 1][1] = 1e6;
      batch["reward"][5][0] = -1e4;
    }
    if (config.sync().mode() == v1::SYNC_MODE_ASYNC) batch["log_prob"] += 0.3 * torch::randn_like(batch["log_prob"]);
    reference.batches.push_back(batch);
    reference.stats.push_back(Train(ppo, batch, i / 100.0, i));
  }
  reference.model = ppo.ModelState();
  reference.optimizer = ppo.OptimizerState();
  return reference;
}

// Trains ranks with `shares` of the columns and compares them with one another, after every update, and with one rank.
void ExpectRanksEqualOneRank(const v1::RunConfig& config, const ActorCriticOptions& network,
                             const std::vector<int64_t>& shares, int updates, double tolerance, bool absurd = false) {
  const int64_t columns = std::accumulate(shares.begin(), shares.end(), int64_t{0});
  const Reference want = TrainAlone(config, network, columns, updates, absurd);
  std::mutex mutex;
  std::vector<std::vector<uint64_t>> digests(shares.size());
  RunRanks(static_cast<int>(shares.size()), [&](Collective* collective) {
    const int64_t rank = collective->rank();
    const int64_t offset = std::accumulate(shares.begin(), shares.begin() + rank, int64_t{0});
    Ppo ppo(config, network, kSeed, collective);
    ASSERT_TRUE(ppo.Synchronize().ok());
    for (int i = 0; i < updates; ++i) {
      const auto stats = ppo.Update(ColumnsOf(want.batches[i], offset, shares[rank]), i / 100.0, i);
      ASSERT_TRUE(stats.ok()) << stats.status();
      for (const auto& [name, value] : want.stats[i]) {
        EXPECT_NEAR(stats->at(name), value, 1e-3 * std::max(1.0, std::abs(value))) << name << " of update " << i;
      }
      digests[rank].push_back(ppo.ParametersDigest());
    }
    const std::lock_guard<std::mutex> lock(mutex);
    EXPECT_LT(LargestDifference(ppo.ModelState(), want.model), tolerance) << "rank " << rank;
    EXPECT_LT(LargestDifference(ppo.OptimizerState(), want.optimizer), tolerance) << "rank " << rank;
  });
  for (const auto& of_rank : digests) EXPECT_EQ(of_rank, digests[0]);
  EXPECT_EQ(digests[0].size(), static_cast<size_t>(updates));
}

// 128 samples in minibatches of 40, 40 and 48, twice; learning rate by the divergence.
v1::RunConfig RanksConfig() {
  v1::RunConfig config = SampleConfig();
  config.mutable_ppo()->set_minibatch_size(40);
  config.mutable_ppo()->set_lr(3e-4);
  config.mutable_ppo()->set_lr_schedule(v1::LEARNING_RATE_SCHEDULE_KL_ADAPTIVE);
  config.mutable_learner()->set_bucket_mb(4);
  return config;
}

TEST(PpoDataParallel, TwoRanksWithHalfTheBatchEqualOneRankWithAllOfIt) {
  for (const bool normalize : {false, true}) {
    v1::RunConfig config = RanksConfig();
    config.mutable_ppo()->set_normalize_advantages(normalize);
    ExpectRanksEqualOneRank(config, SampleNetwork(), {4, 4}, 50, 1e-5);
  }
}

TEST(PpoDataParallel, TeamsWithACentralCriticEqualOneRankToo) {
  v1::RunConfig config = RanksConfig();
  config.mutable_ppo()->set_normalize_advantages(true);
  ExpectRanksEqualOneRank(config, CentralNetwork(), {4, 4}, 30, 1e-5);
  ExpectRanksEqualOneRank(config, CentralNetwork(true), {6, 0, 2}, 20, 1e-5);
}

TEST(PpoDataParallel, SharesMayBeUnequalOrEmpty) {
  v1::RunConfig config = RanksConfig();
  config.mutable_ppo()->set_normalize_advantages(true);
  ExpectRanksEqualOneRank(config, SampleNetwork(), {6, 2}, 20, 1e-5);
  ExpectRanksEqualOneRank(config, SampleNetwork(), {0, 5, 3}, 20, 1e-5);
  ExpectRanksEqualOneRank(config, SampleNetwork(true), {8, 0}, 20, 1e-5);
}

TEST(PpoDataParallel, AbsurdNumbersAreClippedInTheStatisticsOfEveryRankAlike) {
  v1::RunConfig config = RanksConfig();
  config.mutable_ppo()->set_normalize_advantages(true);
  ExpectRanksEqualOneRank(config, SampleNetwork(), {3, 5}, 6, 1e-4, /*absurd=*/true);
}

TEST(PpoDataParallel, HoldsForNetworksThatAutogradDifferentiates) {
  v1::RunConfig config = RanksConfig();
  config.mutable_ppo()->set_adam_epsilon(1e-5);
  config.mutable_ppo()->set_entropy_coefficient(0.01);
  for (const bool discrete : {false, true}) {
    ActorCriticOptions network = SampleNetwork(discrete, /*shared_trunk=*/discrete);
    network.hidden = {520};
    ExpectRanksEqualOneRank(config, network, {0, 3, 5}, 4, 1e-5);
  }
}

TEST(PpoDataParallel, HoldsWithVtraceAndWithoutNormalisers) {
  v1::RunConfig config = RanksConfig();
  config.mutable_sync()->set_mode(v1::SYNC_MODE_ASYNC);
  config.mutable_ppo()->set_vtrace_rho_max(1);
  config.mutable_ppo()->set_vtrace_c_max(1);
  config.mutable_model()->set_normalize_observations(false);
  config.mutable_model()->set_normalize_returns(false);
  ExpectRanksEqualOneRank(config, SampleNetwork(), {3, 5}, 10, 1e-5);
  ExpectRanksEqualOneRank(config, SampleNetwork(true), {8, 0}, 10, 1e-5);
}

TEST(PpoDataParallel, RanksStopEarlyTogether) {
  v1::RunConfig config = RanksConfig();
  config.mutable_ppo()->set_epochs(10);
  config.mutable_ppo()->set_lr(0.02);
  config.mutable_ppo()->set_lr_schedule(v1::LEARNING_RATE_SCHEDULE_CONSTANT);
  config.mutable_ppo()->set_kl_stop(0.003);
  const Reference alone = TrainAlone(config, SampleNetwork(), 8, 3);
  ASSERT_LT(alone.stats[0].at("epochs"), 10);
  ExpectRanksEqualOneRank(config, SampleNetwork(), {3, 5}, 3, 1e-4);
}

TEST(PpoDataParallel, ASampleThatIsNotFiniteSkipsItsMinibatchOnEveryRank) {
  for (const int64_t width : {8, 520}) {
    v1::RunConfig config = RanksConfig();
    ActorCriticOptions network = SampleNetwork();
    network.hidden = {width};
    Batch batch = TrainAlone(config, network, 8, 1).batches[0];
    batch["log_prob"][3][7] = -std::numeric_limits<float>::infinity();
    batch["obs"][0][0][0] = std::numeric_limits<float>::quiet_NaN();
    Ppo alone(config, network, kSeed);
    const UpdateStats want = Train(alone, batch, 0, 0);
    EXPECT_GT(want.at("skipped_steps"), 0);
    RunRanks(2, [&](Collective* collective) {
      Ppo ppo(config, network, kSeed, collective);
      const auto stats = ppo.Update(ColumnsOf(batch, 4 * collective->rank(), 4), 0, 0);
      ASSERT_TRUE(stats.ok()) << stats.status();
      EXPECT_EQ(stats->at("skipped_steps"), want.at("skipped_steps"));
      EXPECT_EQ(stats->at("gradient_steps"), want.at("gradient_steps"));
      // Observations and returns with such numbers stay out of the statistics on every rank.
      EXPECT_EQ(ppo.acting().obs_scale.mean.abs().max().item<float>(), 0);
      EXPECT_EQ(Find(ppo.ModelState(), "return_normalizer.count").item<double>(), 0);
    });
  }
}

TEST(PpoDataParallel, AGroupOfOneComputesWhatASingleRankDoes) {
  ExpectRanksEqualOneRank(RanksConfig(), SampleNetwork(), {8}, 5, 1e-6);
}

TEST(PpoDataParallel, SynchronizeGivesAllRanksTheStateOfRankZero) {
  const Reference trained = TrainAlone(RanksConfig(), SampleNetwork(), 8, 2);
  RunRanks(2, [&](Collective* collective) {
    Ppo ppo(RanksConfig(), SampleNetwork(), 100 + collective->rank(), collective);
    if (collective->rank() == 0) {
      ASSERT_TRUE(ppo.Restore(trained.model, trained.optimizer).ok());
    }
    ASSERT_TRUE(ppo.Synchronize().ok());
    EXPECT_EQ(LargestDifference(ppo.ModelState(), trained.model), 0);
    EXPECT_EQ(LargestDifference(ppo.OptimizerState(), trained.optimizer), 0);
  });
}

TEST(PpoDataParallel, RefusesBatchesThatDoNotFitTogether) {
  const Reference reference = TrainAlone(RanksConfig(), SampleNetwork(), 8, 1);
  const Batch& batch = reference.batches[0];
  const auto refused = [&](std::function<Batch(int rank)> share, uint64_t ahead, const std::string& words) {
    RunRanks(2, [&](Collective* collective) {
      Ppo ppo(RanksConfig(), SampleNetwork(), kSeed, collective);
      const auto stats = ppo.Update(share(collective->rank()), 0, ahead * collective->rank());
      EXPECT_EQ(stats.status().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(stats.status().message()), HasSubstr(words));
    });
  };
  refused([&](int) { return ColumnsOf(batch, 0, 4); }, 0, "rank 1 has columns from 0 on, want from 4 on");
  refused([&](int rank) { return ColumnsOf(batch, 4 * rank, rank == 0 ? 4 : 3); }, 0,
          "together have 7 columns, want 8");
  refused([&](int rank) { return ColumnsOf(batch, 4 * rank, 4); }, 1, "all ranks must train on the same one");
  Ppo alone(RanksConfig(), SampleNetwork(), kSeed);
  EXPECT_EQ(alone.Update(ColumnsOf(batch, 0, 4), 0, 0).status().code(), absl::StatusCode::kFailedPrecondition);
  Batch nothing = ColumnsOf(batch, 0, 0);
  nothing.total_columns = 0;
  EXPECT_EQ(alone.Update(nothing, 0, 0).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(AcrossRanks, DigestsThatDifferNameTheRank) {
  RunRanks(3, [](Collective* collective) {
    EXPECT_TRUE(CheckEqualDigests(collective, 0xfedcba9876543210).ok());
    const absl::Status status = CheckEqualDigests(collective, collective->rank() == 2 ? 0xfedcba9876543210 : 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 0 has digest 0000000000000001"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 2 has fedcba9876543210"));
  });
}

TEST(AcrossRanks, MergedMomentsAreThoseOfAllRows) {
  const torch::Tensor rows = torch::tensor({1.0, 2.0, 6.0}).view({3, 1});
  RunRanks(3, [&](Collective* collective) {
    // Rank 0 has 1 and 2, rank 1 nothing, rank 2 has 6: mean 3, variance (4 + 1 + 9) / 3.
    RankMoments mine{RunningMoments(1), collective->rank() != 1};
    if (collective->rank() == 0) mine.moments.Update(rows.narrow(0, 0, 2));
    if (collective->rank() == 2) mine.moments.Update(rows.narrow(0, 2, 1));
    const auto all = MergeOverRanks(collective, mine);
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_EQ(all->moments.count(), 3);
    EXPECT_DOUBLE_EQ(all->moments.mean().item<double>(), 3);
    EXPECT_DOUBLE_EQ(all->moments.variance().item<double>(), 14.0 / 3);
    EXPECT_FALSE(all->finite);
  });
}

}  // namespace
}  // namespace skein
