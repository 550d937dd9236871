// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/config/config.h"
#include "learner/run/trainer.h"
#include "tests/learner/rank_threads.h"
#include "tests/learner/sample_fragment.h"

namespace skein {
namespace {

EnvSpec Spec() {
  EnvSpec spec;
  spec.id = "Sample-v0";
  spec.obs_size = 3;
  spec.action_size = 2;
  spec.action_low = {-1, -1};
  spec.action_high = {1, 1};
  return spec;
}

// Environments come one a slot. 32 samples an iteration.
v1::RunConfig TrainerConfig() {
  v1::RunConfig config;
  ApplyDefaults(&config);
  config.mutable_env()->set_id("Sample-v0");
  config.mutable_learner()->set_device("cpu");  // As the ranks' group.
  config.mutable_rollout()->set_num_envs(4);
  config.mutable_ppo()->set_minibatch_size(10);
  config.mutable_ppo()->set_adam_epsilon(1e-5);
  config.mutable_model()->clear_hidden();
  config.mutable_model()->add_hidden(8);
  return config;
}

// Environments [first, first + envs) of an iteration's data, which are the same on any rank.
std::unique_ptr<Columns> MakeStaged(int iteration, int64_t first, int64_t envs) {
  SampleSizes sizes;
  sizes.T = 8;
  sizes.E = 1;
  auto staged = std::make_unique<Columns>(MakeSchema(MakeSampleShape(sizes)), envs, 1);
  const auto fill = [&](uint32_t key, int64_t rows, int64_t width, absl::Span<float> values) {
    for (int64_t t = 0; t < rows; ++t) {
      for (int64_t e = 0; e < envs; ++e) {
        std::seed_seq seed{key, static_cast<uint32_t>(iteration), static_cast<uint32_t>(t),
                           static_cast<uint32_t>(first + e)};
        std::mt19937 random(seed);
        for (int64_t i = 0; i < width; ++i) {
          values[(t * envs + e) * width + i] = std::normal_distribution<float>(0, 1)(random);
        }
      }
    }
  };
  fill(1, 9, 3, staged->values<float>("obs"));
  fill(2, 8, 2, staged->values<float>("action"));
  fill(3, 8, 1, staged->values<float>("reward"));
  for (float& log_prob : staged->values<float>("log_prob")) log_prob = -2.5f;
  return staged;
}

std::string NewFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "trainer_ranks_XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  return name;
}

RunRecord Record(int iterations) {
  RunRecord record;
  record.iteration = static_cast<uint64_t>(iterations);
  record.env_steps = static_cast<uint64_t>(32 * iterations);
  record.episodes = 7;
  record.account.set_collected(record.env_steps);
  v1::Tensor& state = record.state.env_state.emplace();
  state.set_name("env_state");
  state.set_dtype(v1::DATA_TYPE_FLOAT64);
  state.add_shape(4);
  state.add_shape(1);
  const double values[] = {1, 2, 3, 4};
  state.set_data(values, sizeof(values));
  v1::Tensor& memory = record.state.policy_state.emplace();
  memory.set_name("policy_state");
  memory.set_dtype(v1::DATA_TYPE_FLOAT32);
  for (const int64_t extent : {4, 1, 2}) memory.add_shape(extent);
  const float remembered[] = {1, 2, 3, 4, 5, 6, 7, 8};
  memory.set_data(remembered, sizeof(remembered));
  return record;
}

// Iterations [from, to) on one rank, from the folder's checkpoint if from > 0. Saves at the end; returns the digest.
void Train(Collective* collective, const std::string& folder, int from, int to, std::vector<float>* weights) {
  const int rank = collective == nullptr ? 0 : collective->rank(),
            ranks = collective == nullptr ? 1 : collective->size();
  auto trainer = Trainer::Make(TrainerConfig(), Spec(), collective);
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  if (from > 0) {
    const auto resumed = (*trainer)->Resume(folder);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(resumed->record.iteration, static_cast<uint64_t>(from));
    EXPECT_EQ(resumed->record.env_steps, static_cast<uint64_t>(32 * from));
    EXPECT_EQ(resumed->record.episodes, 7u);
    EXPECT_EQ(resumed->record.account.collected(), static_cast<uint64_t>(32 * from));
    ASSERT_TRUE(resumed->record.state.env_state);
    EXPECT_EQ(resumed->record.state.env_state->data(), Record(from).state.env_state->data());
    ASSERT_TRUE(resumed->record.state.policy_state);
    EXPECT_EQ(resumed->record.state.policy_state->SerializeAsString(),
              Record(from).state.policy_state->SerializeAsString());
    EXPECT_FALSE(resumed->checkpoint.digest.empty());
    EXPECT_FALSE(resumed->checkpoint.path.empty());
  }
  const int64_t share = 4 / ranks;
  for (int i = from; i < to; ++i) {
    const auto batch = MakeStaged(i, rank * share, share);
    const auto stats = (*trainer)->Update(batch.get(), 0, i, rank * share, 4);
    ASSERT_TRUE(stats.ok()) << stats.status();
  }
  if (rank != 0) return;
  EXPECT_EQ((*trainer)->reduction().all_reduces > 0, ranks > 1);
  const auto saved = (*trainer)->Save(folder, Record(to));
  ASSERT_TRUE(saved.ok()) << saved.status();
  const auto snapshot = (*trainer)->Snapshot(1);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  weights->clear();
  for (const v1::Tensor& tensor : (*snapshot)->tensors()) {
    const auto* const values = reinterpret_cast<const float*>(tensor.data().data());
    weights->insert(weights->end(), values, values + tensor.data().size() / sizeof(float));
  }
}

TEST(TrainerRanks, ResumesWithAnotherNumberOfRanks) {
  const std::string one_folder = NewFolder();
  std::vector<float> want;
  Train(nullptr, one_folder, 0, 6, &want);
  for (const bool grows : {false, true}) {
    const std::string folder = NewFolder();
    std::vector<float> got;
    const auto on_two = [&](int from, int to) {
      RunRanks(2, [&](Collective* collective) { Train(collective, folder, from, to, &got); });
    };
    if (grows) {
      Train(nullptr, folder, 0, 3, &got);
      on_two(3, 6);
    } else {
      on_two(0, 3);
      Train(nullptr, folder, 3, 6, &got);
    }
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
    std::filesystem::remove_all(folder);
  }
  std::filesystem::remove_all(one_folder);
}

TEST(TrainerRanks, AllRanksLearnThatThereIsNoCheckpoint) {
  const std::string folder = NewFolder();
  RunRanks(2, [&](Collective* collective) {
    auto trainer = Trainer::Make(TrainerConfig(), Spec(), collective);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const auto resumed = (*trainer)->Resume(collective->rank() == 0 ? folder : "/nowhere");
    EXPECT_EQ(resumed.status().code(), absl::StatusCode::kNotFound);
    EXPECT_NE(std::string(resumed.status().message()).find(folder), std::string::npos);
  });
  std::filesystem::remove_all(folder);
}

TEST(TrainerRanks, GoOnFromWhatTheFirstHasInMemory) {
  const std::string folder = NewFolder();
  std::vector<float> want, got;
  Train(nullptr, folder, 0, 3, &want);
  // The same three iterations, kept in memory and not in the folder.
  auto before = Trainer::Make(TrainerConfig(), Spec());
  ASSERT_TRUE(before.ok()) << before.status();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE((*before)->Update(MakeStaged(i, 0, 4).get(), 0, i).ok());
  const auto state = (*before)->Keep();
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_TRUE((*before)->Update(MakeStaged(9, 0, 4).get(), 0, 9).ok());  // What is kept is a copy.
  before->reset();
  RunRanks(2, [&](Collective* collective) {
    auto trainer = Trainer::Make(TrainerConfig(), Spec(), collective);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    Trainer::Resumed mine;
    if (collective->rank() == 0) mine.record = Record(3);
    const auto taken = (*trainer)->TakeOver(collective->rank() == 0 ? state->get() : nullptr, mine);
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(taken->record.iteration, 3u);
    EXPECT_EQ(taken->record.account.collected(), 96u);
    EXPECT_EQ(taken->record.state.env_state->data(), Record(3).state.env_state->data());
    const auto snapshot = (*trainer)->Snapshot(1);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    if (collective->rank() == 0) return;
    for (const v1::Tensor& tensor : (*snapshot)->tensors()) {
      const auto* const values = reinterpret_cast<const float*>(tensor.data().data());
      got.insert(got.end(), values, values + tensor.data().size() / sizeof(float));
    }
  });
  EXPECT_EQ(got, want);
  std::filesystem::remove_all(folder);
}

TEST(TrainerRanks, RefusesACheckpointOfAnotherAlgorithm) {
  const std::string folder = NewFolder();
  std::vector<float> weights;
  Train(nullptr, folder, 0, 1, &weights);
  v1::RunConfig config = TrainerConfig();
  config.mutable_reinforce();
  ApplyDefaults(&config);
  const auto trainer = Trainer::Make(config, Spec());
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  const absl::Status status = (*trainer)->Resume(folder).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(status.message()).find("is of algorithm ppo, this run has reinforce"), std::string::npos)
      << status;
  std::filesystem::remove_all(folder);
}

TEST(TrainerRanks, RefusesADeviceThatIsNotThere) {
  v1::RunConfig config = TrainerConfig();
  config.mutable_learner()->set_device("cuda:7");
  EXPECT_EQ(Trainer::Make(config, Spec()).status().code(), absl::StatusCode::kFailedPrecondition);
  config.mutable_learner()->set_device("tpu");
  EXPECT_EQ(Trainer::Make(config, Spec()).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace skein
