// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/parted_algorithm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "learner/algorithm/registry.h"
#include "learner/ranks/env_share.h"
#include "tests/learner/memory_sample.h"
#include "tests/learner/ppo_sample.h"
#include "tests/learner/rank_threads.h"

namespace skein {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kSeed = 3;
constexpr uint32_t kParts = 4;
constexpr int64_t kEnvs = 8;
constexpr int kUpdates = 2;

v1::RunConfig PartsConfig() {
  v1::RunConfig config = SampleConfig();
  config.mutable_ppo()->set_minibatch_size(40);
  config.mutable_ppo()->set_lr_schedule(v1::LEARNING_RATE_SCHEDULE_KL_ADAPTIVE);
  config.mutable_ppo()->set_normalize_advantages(true);
  config.mutable_ppo()->set_sequence_length(5);
  config.mutable_learner()->set_bucket_mb(4);
  config.mutable_learner()->set_torch_threads(1);
  config.mutable_learner()->set_collective_timeout_seconds(20);
  config.mutable_learner()->set_gradient_parts(kParts);
  return config;
}

std::vector<Batch> Iterations(const v1::RunConfig& config, const ActorCriticOptions& network, int64_t agents) {
  torch::manual_seed(31);
  const Ppo ppo(config, network, kSeed);
  std::vector<Batch> batches;
  for (int i = 0; i < kUpdates; ++i) {
    const bool remembers = network.memory_size > 0;
    batches.push_back(remembers    ? CollectRemembering(ppo, 13, kEnvs, agents)
                      : agents > 1 ? CollectTeams(ppo, 16, kEnvs, agents)
                                   : CollectEpisodes(ppo, 16, kEnvs));
  }
  return batches;
}

// What is compared between runs.
struct Trained {
  std::vector<uint64_t> digests;  // After each update.
  StateTensors model, optimizer, samples;
};

absl::StatusOr<std::unique_ptr<Algorithm>> MakeParted(const v1::RunConfig& config, const ActorCriticOptions& network,
                                                      Collective* ranks) {
  return PartedAlgorithm::Make(config.learner(), ranks,
                               [&](Collective* part) -> absl::StatusOr<std::unique_ptr<Algorithm>> {
                                 return std::make_unique<Ppo>(config, network, kSeed, part);
                               });
}

Trained Train(Algorithm* algorithm, const std::vector<Batch>& batches, int64_t first_env, int64_t envs) {
  Trained trained;
  EXPECT_TRUE(algorithm->Synchronize().ok());
  for (size_t i = 0; i < batches.size(); ++i) {
    const int64_t agents = batches[i]["reward"].size(1) / kEnvs;
    const auto stats = algorithm->Update(ColumnsOf(batches[i], first_env * agents, envs * agents), 0, i);
    EXPECT_TRUE(stats.ok()) << stats.status();
    trained.digests.push_back(algorithm->ParametersDigest());
  }
  trained.model = algorithm->ModelState();
  trained.optimizer = algorithm->OptimizerState();
  trained.samples = algorithm->SampleStats();
  return trained;
}

void ExpectEqual(const StateTensors& got, const StateTensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].second.equal(want[i].second)) << got[i].first;
}

void ExpectNumberOfRanksDoesNotMatter(const v1::RunConfig& config, const ActorCriticOptions& network,
                                      int64_t agents = 1, const std::vector<uint32_t>& numbers = {2, 3, 4}) {
  const std::vector<Batch> batches = Iterations(config, network, agents);
  const auto alone = MakeParted(config, network, nullptr);
  ASSERT_TRUE(alone.ok()) << alone.status();
  const Trained want = Train(alone->get(), batches, 0, kEnvs);
  for (const uint32_t ranks : numbers) {
    RunRanks(static_cast<int>(ranks), [&](Collective* collective) {
      const auto algorithm = MakeParted(config, network, collective);
      ASSERT_TRUE(algorithm.ok()) << algorithm.status();
      const auto share = ShareOfRank(kEnvs, kEnvs / kParts, static_cast<uint32_t>(collective->rank()), ranks);
      const Trained got = Train(algorithm->get(), batches, share->first_env, share->share_envs);
      EXPECT_EQ(got.digests, want.digests) << "rank " << collective->rank() << " of " << ranks;
      ExpectEqual(got.model, want.model);
      ExpectEqual(got.optimizer, want.optimizer);
      const int64_t columns = agents * kEnvs, begin = agents * share->first_env, count = agents * share->share_envs;
      for (size_t i = 0; i < want.samples.size(); ++i) {
        const torch::Tensor all = want.samples[i].second.view({-1, columns});
        EXPECT_TRUE(got.samples[i].second.equal(all.narrow(1, begin, count).flatten())) << want.samples[i].first;
      }
    });
  }
  // They are those of a part on each rank without the setting.
  RunRanks(kParts, [&](Collective* collective) {
    Ppo ppo(config, network, kSeed, collective);
    EXPECT_EQ(Train(&ppo, batches, collective->rank() * kEnvs / kParts, kEnvs / kParts).digests, want.digests);
  });
}

TEST(PartedAlgorithm, TheNumberOfRanksChangesNoBit) {
  ExpectNumberOfRanksDoesNotMatter(PartsConfig(), SampleNetwork());
  ExpectNumberOfRanksDoesNotMatter(PartsConfig(), CentralNetwork(), 2);
}

TEST(PartedAlgorithm, NorWithNetworksThatAutogradDifferentiates) {
  ActorCriticOptions network = SampleNetwork(true);
  network.hidden = {520};
  ExpectNumberOfRanksDoesNotMatter(PartsConfig(), network);
}

TEST(PartedAlgorithm, NorWithAMemory) {
  for (const MemoryKind kind : {MemoryKind::kGru, MemoryKind::kLstm}) {
    ExpectNumberOfRanksDoesNotMatter(PartsConfig(), MemoryNetwork(kind, true), 1, {2});
    ExpectNumberOfRanksDoesNotMatter(PartsConfig(), MemoryNetwork(kind, true, false, true, true), 3, {3});
    v1::RunConfig config = PartsConfig();
    config.mutable_ppo()->set_burn_in(3);  // Which autograd differentiates.
    ExpectNumberOfRanksDoesNotMatter(config, MemoryNetwork(kind), 1, {2});
  }
}

TEST(PartedAlgorithm, RestoresAllParts) {
  const v1::RunConfig config = PartsConfig();
  const std::vector<Batch> batches = Iterations(config, SampleNetwork(), 1);
  const auto whole = MakeParted(config, SampleNetwork(), nullptr);
  const auto resumed = MakeParted(config, SampleNetwork(), nullptr);
  ASSERT_TRUE(whole.ok() && resumed.ok());
  ASSERT_TRUE((*whole)->Update(batches[0], 0, 0).ok());
  ASSERT_TRUE((*resumed)->Restore((*whole)->ModelState(), (*whole)->OptimizerState()).ok());
  for (Algorithm* const one : {whole->get(), resumed->get()}) ASSERT_TRUE(one->Update(batches[1], 0, 1).ok());
  EXPECT_EQ((*resumed)->ParametersDigest(), (*whole)->ParametersDigest());
}

TEST(PartedAlgorithm, ARankMayHaveFewerEnvironmentsThanParts) {
  const v1::RunConfig config = PartsConfig();
  const std::vector<Batch> batches = Iterations(config, SampleNetwork(), 1);
  RunRanks(2, [&](Collective* collective) {
    const auto algorithm = MakeParted(config, SampleNetwork(), collective);
    ASSERT_TRUE(algorithm.ok()) << algorithm.status();
    // The first rank has all columns but one: nothing came for its others.
    Train(algorithm->get(), batches, collective->rank() == 0 ? 0 : 7, collective->rank() == 0 ? 7 : 1);
  });
}

TEST(PartedAlgorithm, RefusesMoreRanksThanParts) {
  v1::RunConfig config = PartsConfig();
  config.mutable_learner()->set_gradient_parts(2);
  RunRanks(3, [&](Collective* collective) {
    const absl::Status status = MakeParted(config, SampleNetwork(), collective).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "learner.gradient_parts: got 2 for 3 learners, want a part for each; set learner.gradient_parts to 3 or "
              "more, or start 2 or fewer");
  });
}

TEST(PartedAlgorithm, RefusesAGpu) {
  EnvSpec spec;
  spec.obs_size = 3;
  spec.action_size = 2;
  const absl::Status status = MakeAlgorithm(PartsConfig(), spec, nullptr, torch::Device("cuda:0")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("with a learner on cuda:0, want 0; set learner.device to cpu"));
}

TEST(ColumnsOf, APartOfAPartHasItsPlaceInTheWhole) {
  const Batch batch = Iterations(PartsConfig(), CentralNetwork(), 2)[0];
  const Batch part = ColumnsOf(ColumnsOf(batch, 4, 10), 2, 6), want = ColumnsOf(batch, 6, 6);
  EXPECT_EQ(part.column_offset, 6);
  EXPECT_EQ(part.total_columns, 16);
  for (const auto& [name, values] : want.tensors()) EXPECT_TRUE(part[name].equal(values)) << name;
}

}  // namespace
}  // namespace skein
