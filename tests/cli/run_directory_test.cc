// SPDX-License-Identifier: Apache-2.0
#include "cli/run_directory.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/config/config.h"
#include "base/process/subprocess.h"
#include "gmock/gmock.h"
#include "learner/run/checkpoint.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

v1::RunConfig Config(const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all = {"name=run", "env.id=CartPole-v1"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return LoadRunConfig("", all, 2).value();
}

void WriteCheckpoint(const ScratchFolder& folder, const std::string& name, const std::string& manifest) {
  folder.Write("run/checkpoints/" + name + "/manifest.json", manifest);
  folder.Write("run/checkpoints/" + name + "/DONE", "x\n");
}

TEST(RunDirectory, MakesTheFolderWithAConfigurationThatReadsBackEqual) {
  const ScratchFolder folder;
  const auto directory = RunDirectory::Open(folder.path() + "/runs/", Config(), ResumeMode::kAuto);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->path(), folder.path() + "/runs/run");
  EXPECT_FALSE(directory->NewestCheckpoint().has_value());
  v1::RunConfig read;
  ASSERT_TRUE(MergeYaml(folder.Read("runs/run/config.yaml"), "config.yaml", &read).ok());
  EXPECT_EQ(FirstDifference(read, Config()), std::nullopt);
  EXPECT_EQ(folder.Read("runs/run/lock"), absl::StrCat(getpid(), "\n"));
}

TEST(RunDirectory, IsRefusedWhileAnotherHoldsItAndFreeAfterwards) {
  const ScratchFolder folder;
  {
    const auto first = RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto);
    ASSERT_TRUE(first.ok());
    for (ResumeMode mode : {ResumeMode::kAuto, ResumeMode::kNever}) {
      const auto second = RunDirectory::Open(folder.path(), Config(), mode);
      EXPECT_TRUE(absl::IsUnavailable(second.status()));
      EXPECT_THAT(second.status().message(), HasSubstr(absl::StrCat("in use by process ", getpid())));
    }
  }
  EXPECT_TRUE(RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto).ok());
}

TEST(RunDirectory, FollowsNoSymbolicLinkThatIsItsLock) {
  const ScratchFolder folder;
  folder.Write("run/config.yaml", "name: run\n");
  const std::string target = folder.Write("precious", "not a lock\n");
  ASSERT_EQ(symlink(target.c_str(), (folder.path() + "/run/lock").c_str()), 0);
  const auto directory = RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto);
  EXPECT_TRUE(absl::IsPermissionDenied(directory.status())) << directory.status();
  EXPECT_THAT(directory.status().message(), HasSubstr("run/lock is a symbolic link"));
  EXPECT_EQ(folder.Read("precious"), "not a lock\n");
}

TEST(RunDirectory, FollowsNoSymbolicLinkWithinIt) {
  for (const char* name : {"checkpoints", "config.yaml", "coordinator", "coordinator/lock", "coordinator/log",
                           "eval.json", "log", "log.jsonl", "metrics.jsonl"}) {
    const ScratchFolder folder, elsewhere;
    const std::filesystem::path link = folder.path() + "/run/" + name;
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::create_symlink(elsewhere.path(), link);
    const auto directory = RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto);
    EXPECT_TRUE(absl::IsPermissionDenied(directory.status())) << directory.status();
    EXPECT_THAT(directory.status().message(), HasSubstr(std::string("run/") + name + " is a symbolic link"));
    EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path())) << name;
    EXPECT_TRUE(RunDirectory::Open(folder.path(), Config(), ResumeMode::kNever).ok());  // Beside the old one.
  }
}

TEST(RunDirectory, MayBeALinkItself) {
  const ScratchFolder folder, elsewhere;
  ASSERT_EQ(symlink(elsewhere.path().c_str(), (folder.path() + "/run").c_str()), 0);
  EXPECT_TRUE(RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto).ok());
  EXPECT_TRUE(std::filesystem::exists(elsewhere.path() + "/config.yaml"));
}

TEST(RunDirectory, NoticesThatItWasDeletedAlsoIfThereIsAnotherOneNow) {
  const ScratchFolder folder;
  const auto first = RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first->CheckIsThere().ok());
  std::filesystem::remove_all(first->path());
  EXPECT_TRUE(absl::IsPermissionDenied(first->CheckIsThere()));
  const auto second = RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(second->CheckIsThere().ok());
  EXPECT_TRUE(absl::IsPermissionDenied(first->CheckIsThere()));
}

TEST(RunDirectory, DoesNotWaitForNotedChildrenThatHaveEndedOrAreNotOurs) {
  const ScratchFolder folder;
  {
    const auto first = RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto);
    ASSERT_TRUE(first->NoteChild(getpid()).ok());  // This process: alive, but called otherwise.
    EXPECT_EQ(folder.Read("run/lock"), absl::StrCat(getpid(), "\n", getpid(), "\n"));
  }
  EXPECT_TRUE(RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto).ok());
}

TEST(RunDirectory, NamesAllChildrenThatAreLeftAndSaysThatTheyAreStopped) {
  const ScratchFolder folder;
  const std::string program = folder.WriteScript("skein-sleeper", "while :; do sleep 0.05; done");
  std::vector<std::unique_ptr<Subprocess>> left;
  std::string pids;
  {
    const auto first = RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto);
    for (int i = 0; i < 2; ++i) {
      auto process = Subprocess::Spawn({.argv = {program}});
      ASSERT_TRUE(process.ok()) << process.status();
      left.push_back(*std::move(process));
      ASSERT_TRUE(first->NoteChild(left.back()->pid()).ok());
      left.back()->Signal(SIGSTOP);
    }
  }
  const absl::Status status = RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  const int first = left[0]->pid(), second = left[1]->pid();
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("in use by processes ", first, ", ", second)));
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("stopped (SIGSTOP): `kill -CONT ", first, " ", second, "`")));
  for (const auto& one : left) one->Signal(SIGKILL);
  for (const auto& one : left) EXPECT_EQ(one->Wait(absl::Seconds(10)), 137);
}

TEST(RunDirectory, WithCheckpointsOfAnotherConfigurationIsRefusedByTheFirstKey) {
  const ScratchFolder folder;
  ASSERT_TRUE(RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto).ok());
  WriteCheckpoint(folder, "step_000000000010", R"({"env_steps": 10})");
  const std::string before = folder.Read("run/config.yaml");
  const auto other = RunDirectory::Open(folder.path(), Config({"ppo.lr=0.5", "ppo.gamma=0.5"}), ResumeMode::kAuto);
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status()));
  EXPECT_THAT(other.status().message(), HasSubstr("ppo.lr: 0.0003 -> 0.5"));
  EXPECT_THAT(other.status().message(), HasSubstr("--resume never"));
  EXPECT_THAT(other.status().message(), HasSubstr("--name"));
  EXPECT_EQ(folder.Read("run/config.yaml"), before);
}

TEST(RunDirectory, WithAnotherNumberOfEnvironmentsSaysWhichFlagsDecideIt) {
  const ScratchFolder folder;
  WriteCheckpoint(folder, "step_000000000010", "{}");
  folder.Write("run/config.yaml", ToYaml(Config({"rollout.num_envs=32", "rollout.envs_per_runner=16"})));
  const auto status = RunDirectory::Open(folder.path(), Config({"rollout.num_envs=64", "rollout.envs_per_runner=16"}),
                                         ResumeMode::kAuto)
                          .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("--learners"));
  EXPECT_THAT(status.message(), HasSubstr("32 are enough for 2 learners"));
}

// Neither --envs nor --learners decides the number of directions.
TEST(RunDirectory, OfAnotherSearchSaysInWhatItDiffersAndNamesNoOtherFlags) {
  const ScratchFolder folder;
  WriteCheckpoint(folder, "step_000000000010", "{}");
  folder.Write("run/config.yaml", ToYaml(Config({"ars.top_dirs=4"})));
  const auto difference = [&](const std::vector<std::string>& overrides) {
    const auto status = RunDirectory::Open(folder.path(), Config(overrides), ResumeMode::kAuto).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), testing::Not(HasSubstr("--envs")));
    return std::string(status.message());
  };
  EXPECT_THAT(difference({"ars.top_dirs=4", "directions.num_dirs=16"}),
              HasSubstr("another configuration: directions.num_dirs: 32 -> 16; start over"));
  EXPECT_THAT(difference({"es.step_size=0.1", "directions.num_dirs=16"}),
              HasSubstr("another configuration: algorithm: ars -> es; start over"));
  EXPECT_THAT(difference({}), HasSubstr("another configuration: algorithm: ars -> ppo; start over"));
}

TEST(RunDirectory, TakesAnotherConfigurationWhereThereIsNoCheckpoint) {
  const ScratchFolder folder;
  ASSERT_TRUE(RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto).ok());
  ASSERT_TRUE(RunDirectory::Open(folder.path(), Config({"seed=9"}), ResumeMode::kAuto).ok());
  EXPECT_THAT(folder.Read("run/config.yaml"), HasSubstr("seed: 9"));
}

TEST(RunDirectory, TakesAnotherTargetAndWritesItDown) {
  const ScratchFolder folder;
  ASSERT_TRUE(RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto).ok());
  WriteCheckpoint(folder, "step_000000000010", R"({"env_steps": 10})");
  ASSERT_TRUE(RunDirectory::Open(folder.path(), Config({"total_steps=77"}), ResumeMode::kMust).ok());
  EXPECT_THAT(folder.Read("run/config.yaml"), HasSubstr("total_steps: 77"));
}

TEST(RunDirectory, WithAConfigurationThatCannotBeReadIsDataLoss) {
  const ScratchFolder folder;
  WriteCheckpoint(folder, "step_000000000010", "{}");
  EXPECT_TRUE(absl::IsDataLoss(RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto).status()));
  folder.Write("run/config.yaml", "seed: [1");
  const auto status = RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(status.message(), HasSubstr("run/config.yaml"));
}

TEST(RunDirectory, MustWantsACheckpointAndMakesNothingWithoutOne) {
  const ScratchFolder folder;
  EXPECT_TRUE(absl::IsNotFound(RunDirectory::Open(folder.path(), Config(), ResumeMode::kMust).status()));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/run"));
}

TEST(RunDirectory, NeverMovesNothingWhereThereIsNothing) {
  const ScratchFolder folder;
  EXPECT_EQ(RunDirectory::Open(folder.path(), Config(), ResumeMode::kNever)->moved_to(), "");
}

TEST(RunDirectory, NeverMovesTheOldFolderToTheFirstFreeName) {
  const ScratchFolder folder;
  folder.Write("run.old-1/here", "taken");
  folder.Write("run/config.yaml", "seed: 3\n");
  WriteCheckpoint(folder, "step_000000000010", R"({"env_steps": 10})");
  const auto directory = RunDirectory::Open(folder.path(), Config(), ResumeMode::kNever);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->moved_to(), folder.path() + "/run.old-2");
  EXPECT_EQ(directory->FindOldCopies().count, 2u);
  EXPECT_GE(directory->FindOldCopies().bytes, 5u + 8u);  // "taken", "seed: 3\n", and a checkpoint.
  EXPECT_EQ(folder.Read("run.old-2/config.yaml"), "seed: 3\n");
  EXPECT_FALSE(directory->NewestCheckpoint().has_value());
  EXPECT_TRUE(absl::IsUnavailable(RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto).status()));
}

TEST(RunDirectory, WhereNoFolderCanBeMadeIsAnIoError) {
  const ScratchFolder folder;
  folder.Write("file", "");
  const auto status = RunDirectory::Open(folder.path() + "/file", Config(), ResumeMode::kAuto).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("/file/run"));
}

TEST(NewestCheckpoint, IsTheLastCompleteOne) {
  const ScratchFolder folder;
  WriteCheckpoint(folder, "step_000000000010", R"({"env_steps": 10, "digest": "aa"})");
  WriteCheckpoint(folder, "step_000000000020", R"({"env_steps": 20, "digest": "bb"})");
  folder.Write("run/checkpoints/step_000000000030/manifest.json", R"({"env_steps": 30})");  // No DONE.
  folder.Write("run/checkpoints/.tmp-1/DONE", "");
  folder.Write("run/config.yaml", ToYaml(Config()));
  const auto directory = RunDirectory::Open(folder.path(), Config(), ResumeMode::kMust);
  ASSERT_TRUE(directory.ok()) << directory.status();
  const auto newest = directory->NewestCheckpoint();
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->env_steps, 20u);
  EXPECT_EQ(newest->digest, "bb");
  EXPECT_EQ(newest->path, folder.path() + "/run/checkpoints/step_000000000020");
}

TEST(NewestCheckpoint, WithADamagedManifestTellsNoFigures) {
  const ScratchFolder folder;
  WriteCheckpoint(folder, "step_000000000010", "{\"env_steps\": ");
  folder.Write("run/config.yaml", ToYaml(Config()));
  const auto directory = RunDirectory::Open(folder.path(), Config(), ResumeMode::kAuto);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->NewestCheckpoint()->env_steps, 0u);
  EXPECT_EQ(directory->NewestCheckpoint()->digest, "");
}

TEST(NewestIntactCheckpoint, IsTheLastOneWhoseChecksumsAreRight) {
  const ScratchFolder folder;
  const std::string checkpoints = folder.path() + "/run/checkpoints";
  for (const uint64_t steps : {10, 20, 30}) {
    Checkpoint checkpoint;
    checkpoint.env_steps = steps;
    checkpoint.counters = {{"collected", steps + 2}, {"trained", steps}, {"stale", 2}};
    ASSERT_TRUE(SaveCheckpoint(checkpoints, checkpoint, 9).ok());
  }
  EXPECT_EQ(FindNewestIntactCheckpoint(folder.path() + "/run")->env_steps, 30u);
  folder.Write("run/checkpoints/step_000000000030/state.safetensors", "cut");
  EXPECT_EQ(FindNewestCheckpoint(folder.path() + "/run")->env_steps, 30u);
  const auto intact = FindNewestIntactCheckpoint(folder.path() + "/run");
  ASSERT_TRUE(intact.has_value());
  EXPECT_EQ(intact->path, checkpoints + "/step_000000000020");
  EXPECT_EQ(intact->account.collected(), 22u);
  EXPECT_EQ(intact->account.trained(), 20u);
  EXPECT_EQ(intact->account.stale(), 2u);
  // A link could lead anywhere.
  std::filesystem::rename(checkpoints + "/step_000000000020", folder.path() + "/elsewhere");
  std::filesystem::create_directory_symlink(folder.path() + "/elsewhere", checkpoints + "/step_000000000020");
  EXPECT_EQ(FindNewestIntactCheckpoint(folder.path() + "/run")->env_steps, 10u);
  EXPECT_FALSE(FindNewestIntactCheckpoint(folder.path() + "/none").has_value());
}

TEST(FirstDifference, LeavesOutWhatIsNotLearned) {
  for (const char* setting : {"total_steps=5",
                              "eval.episodes=3",
                              "checkpoint.keep=9",
                              "checkpoint.interval_steps=7",
                              "coordinator.lease_seconds=60",
                              "coordinator.heartbeat_seconds=2",
                              "coordinator.barrier_timeout_seconds=3",
                              "callbacks.python=mine:make",
                              "logging.interval_seconds=60",
                              "logging.utilization_interval_seconds=2",
                              "learner.device=cuda:1",
                              "learner.micro_batch_size=64",
                              "learner.cudnn_benchmark=true",
                              "learner.cuda_graph=true",
                              "learner.prefetch_depth=2",
                              "learner.bucket_mb=1",
                              "learner.shortfall_seconds=3",
                              "learner.collective_timeout_seconds=5",
                              "learner.min_ranks=1",
                              "rollout.step_timeout_seconds=90",
                              "rollout.env_rebuilds=3",
                              "env.external.start_timeout_seconds=90",
                              "env.external.restarts=3",
                              "transport.trajectory_compression=zstd",
                              "transport.policy_compression=zstd",
                              "resources.actor.cpus=0.5",
                              "resources.learner.memory=2GiB"}) {
    EXPECT_EQ(FirstDifference(Config(), Config({setting})), std::nullopt) << setting;
    EXPECT_EQ(RunId(Config()), RunId(Config({setting}))) << setting;
  }
  // More threads round differently.
  EXPECT_EQ(*FirstDifference(Config(), Config({"learner.torch_threads=2"})), "learner.torch_threads: 1 -> 2");
  EXPECT_EQ(*FirstDifference(Config(), Config({"learner.tf32=true"})), "learner.tf32: false -> true");
  EXPECT_EQ(*FirstDifference(Config(), Config({"transport.policy_precision=bf16"})),
            "transport.policy_precision: PRECISION_FP32 -> PRECISION_BF16");
}

// What follows from it is left out, too.
TEST(FirstDifference, LeavesOutHowManyDirectionsAreInAWorkOrder) {
  const v1::RunConfig two = Config({"ars.top_dirs=4", "directions.dir_chunk=2"});
  for (const char* chunk : {"directions.dir_chunk=1", "directions.dir_chunk=32", "directions.dir_chunk=0"}) {
    EXPECT_EQ(FirstDifference(two, Config({"ars.top_dirs=4", chunk})), std::nullopt) << chunk;
    EXPECT_EQ(RunId(two), RunId(Config({"ars.top_dirs=4", chunk}))) << chunk;
  }
}

TEST(FirstDifference, LooksIntoListsAndEnums) {
  EXPECT_EQ(*FirstDifference(Config(), Config({"model.hidden=[64, 32]"})), "model.hidden: [64, 64] -> [64, 32]");
  EXPECT_THAT(*FirstDifference(Config(), Config({"sync.mode=overlapped"})), StartsWith("sync.mode: "));
}

TEST(RunId, ChangesWithTheConfiguration) {
  EXPECT_NE(RunId(Config()), RunId(Config({"seed=5"})));
  EXPECT_THAT(RunId(Config()), StartsWith("run-"));
}

}  // namespace
}  // namespace skein
