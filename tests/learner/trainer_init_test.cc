// SPDX-License-Identifier: Apache-2.0
// Runs that begin with the weights of another one (learner.init_from).
#include <memory>

#include "base/config/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "learner/run/checkpoint.h"
#include "learner/run/trainer.h"
#include "tests/cli/scratch_folder.h"
#include "tests/learner/sample_fragment.h"

namespace skein {
namespace {

using testing::HasSubstr;

class TrainerInit : public testing::Test {
 protected:
  v1::RunConfig Config(uint64_t seed, uint32_t width = 8) const {
    v1::RunConfig config;
    ApplyDefaults(&config);
    config.set_seed(seed);
    config.mutable_env()->set_id("Sample-v0");
    config.mutable_rollout()->set_num_envs(1);
    config.mutable_model()->clear_hidden();
    config.mutable_model()->add_hidden(width);
    return config;
  }
  static std::unique_ptr<Trainer> Make(const v1::RunConfig& config) {
    EnvSpec spec;
    spec.id = "Sample-v0";
    spec.obs_size = 3;
    spec.action_size = 2;
    spec.action_low = {-1, -1};
    spec.action_high = {1, 1};
    auto trainer = Trainer::Make(config, spec);
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    return *std::move(trainer);
  }
  static void Update(Trainer* trainer) {
    SampleSizes sizes;
    sizes.T = 8;
    sizes.E = 1;
    Columns batch(MakeSchema(MakeSampleShape(sizes)), 1, 1);
    for (float& value : batch.values<float>("obs")) value = 2;
    for (float& value : batch.values<float>("action")) value = 0.5f;
    for (float& value : batch.values<float>("reward")) value = 1;
    for (float& value : batch.values<float>("log_prob")) value = -2.5f;
    ASSERT_TRUE(trainer->Update(&batch, 0, 0).ok());
  }
  // Another run with one update behind it.
  std::unique_ptr<Trainer> MakeOther() const {
    auto other = Make(Config(1));
    Update(other.get());
    RunRecord record;
    record.iteration = 1;
    record.env_steps = 8;
    EXPECT_TRUE(other->Save(folder_.path() + "/run/checkpoints", record).ok());
    return other;
  }
  v1::RunConfig FromOther(uint32_t width = 8, bool optimizer = false, uint64_t seed = 2) const {
    v1::RunConfig config = Config(seed, width);
    config.mutable_learner()->set_init_from(folder_.path() + "/run");
    config.mutable_learner()->set_init_optimizer(optimizer);
    return config;
  }
  const ScratchFolder folder_;
};

TEST_F(TrainerInit, TakesTheWeightsAndNormalisers) {
  const auto other = MakeOther(), trainer = Make(FromOther());
  EXPECT_NE(trainer->ParametersDigest(), other->ParametersDigest());
  ASSERT_TRUE(trainer->InitFrom().ok()) << trainer->InitFrom();
  EXPECT_EQ(trainer->ParametersDigest(), other->ParametersDigest());
  EXPECT_EQ(trainer->Snapshot(1)->get()->SerializeAsString(), other->Snapshot(1)->get()->SerializeAsString());
}

TEST_F(TrainerInit, TakesTheOptimizerWhereItIsAskedTo) {
  // With one seed for all, so that they take the same minibatches.
  const auto other = MakeOther(), with = Make(FromOther(8, true, 1)), without = Make(FromOther(8, false, 1));
  ASSERT_TRUE(with->InitFrom().ok());
  ASSERT_TRUE(without->InitFrom().ok());
  for (Trainer* const trainer : {other.get(), with.get(), without.get()}) Update(trainer);
  EXPECT_EQ(with->ParametersDigest(), other->ParametersDigest());
  EXPECT_NE(without->ParametersDigest(), other->ParametersDigest());  // Its moments begin at zero.
}

TEST_F(TrainerInit, RefusesAnotherNetworkAndAFolderWithoutCheckpoints) {
  MakeOther();
  const auto wider = Make(FromOther(9));
  const uint64_t before = wider->ParametersDigest();
  const absl::Status refused = wider->InitFrom();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("learner.init_from: "));
  EXPECT_EQ(wider->ParametersDigest(), before);
  v1::RunConfig elsewhere = FromOther(9);
  elsewhere.mutable_env()->set_id("Another-v0");
  EXPECT_THAT(std::string(Make(elsewhere)->InitFrom().message()),
              HasSubstr("(a policy of Sample-v0; this run is of Another-v0): "));
  v1::RunConfig nowhere = Config(2);
  nowhere.mutable_learner()->set_init_from(folder_.path() + "/none");
  EXPECT_EQ(Make(nowhere)->InitFrom().code(), absl::StatusCode::kNotFound);
}

TEST_F(TrainerInit, RefusesTensorsOfTheSameSizesThatMeanSomethingElse) {
  MakeOther();
  const std::vector<std::pair<std::string, std::string>> others = {
      {"model.activation=relu", "model.activation is relu, but the weights are of a run with tanh"},
      {"model.normalize_observations=false", "model.normalize_observations is false, but"},
      {"model.normalize_returns=false", "model.normalize_returns is false, but"},
      {"env.hide=[1]", "env.hide is [1], but the weights are of a run with []"},
      {"env.transforms=[squash]", "env.transforms clips, scales, squashes, stacks or hides otherwise"},
      {"env.transforms=[{stack: 2}]", "env.transforms clips, scales, squashes, stacks or hides otherwise"}};
  for (const auto& [setting, said] : others) {
    v1::RunConfig config = FromOther();
    ASSERT_TRUE(ApplyOverride(setting, &config).ok());
    const auto trainer = Make(config);
    const uint64_t before = trainer->ParametersDigest();
    const absl::Status refused = trainer->InitFrom();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << setting;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(said));
    EXPECT_EQ(trainer->ParametersDigest(), before) << setting;
  }
  v1::RunConfig rewarded = FromOther();
  ASSERT_TRUE(ApplyOverride("env.transforms=[{reward_scale: 2}, {time_limit: 5}]", &rewarded).ok());
  EXPECT_TRUE(Make(rewarded)->InitFrom().ok());
}

TEST_F(TrainerInit, RefusesAModelOfSequences) {
  MakeOther();
  auto found = FindCheckpoint(folder_.path() + "/run");
  ASSERT_TRUE(found.ok()) << found.status();
  found->checkpoint.env_id = kSequenceModelId;
  ASSERT_TRUE(SaveCheckpoint(folder_.path() + "/words/checkpoints", found->checkpoint, 1).ok());
  v1::RunConfig config = Config(2);
  config.mutable_learner()->set_init_from(folder_.path() + "/words");
  const absl::Status refused = Make(config)->InitFrom();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is a model of sequences and no policy"));
}

// A run that trains while another process reads its checkpoints.
TEST_F(TrainerInit, LeavesWhatAnotherProcessIsWritingAlone) {
  MakeOther();
  const std::string writing = folder_.Write("run/checkpoints/.tmp-step_000000000016-1/model.safetensors", "x");
  ASSERT_TRUE(Make(FromOther())->InitFrom().ok());
  EXPECT_EQ(folder_.Read("run/checkpoints/.tmp-step_000000000016-1/model.safetensors"), "x") << writing;
}

}  // namespace
}  // namespace skein
