// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/rank_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <string>

namespace skein {
namespace {

using Variables = std::map<std::string, std::string>;
using testing::HasSubstr;

absl::StatusOr<RankEnvironment> Read(const Variables& variables) {
  return ReadRankEnvironment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

void ExpectRank(const Variables& variables, int rank, int size, int local_rank) {
  const auto read = Read(variables);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rank, rank);
  EXPECT_EQ(read->size, size);
  EXPECT_EQ(read->local_rank, local_rank);
}

void ExpectRefused(const Variables& variables, const std::string& part) {
  const auto read = Read(variables);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(read.status().message()), HasSubstr(part));
}

TEST(RankEnvironment, IsASingleRankWithoutALauncher) { ExpectRank({{"HOME", "/"}}, 0, 1, 0); }

TEST(RankEnvironment, ReadsTorchrunsVariables) {
  ExpectRank({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}}, 5, 8, 1);
}

TEST(RankEnvironment, ReadsThoseOfASlurmStep) {
  ExpectRank({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}}, 3,
             4, 1);
}

TEST(RankEnvironment, CountsTheTasksOfTheStepRatherThanOfTheJob) {
  // `srun -n 2` in a job of 8 tasks.
  ExpectRank({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}}, 1,
             2, 1);
}

TEST(RankEnvironment, TakesABatchScriptOfManyTasksForASingleRank) {
  ExpectRank({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}, {"SLURM_JOB_ID", "7"}}, 0, 1, 0);
}

TEST(RankEnvironment, TakesAnInteractiveShellForASingleRank) {
  ExpectRank({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}}, 0,
             1, 0);
}

TEST(RankEnvironment, BelievesTorchrunWithinASlurmStep) {
  ExpectRank({{"RANK", "2"},
              {"WORLD_SIZE", "4"},
              {"LOCAL_RANK", "2"},
              {"SLURM_PROCID", "0"},
              {"SLURM_STEP_NUM_TASKS", "2"},
              {"SLURM_LOCALID", "0"}},
             2, 4, 2);
}

TEST(RankEnvironment, RefusesHalfASet) {
  ExpectRefused({{"RANK", "0"}, {"LOCAL_RANK", "0"}}, "WORLD_SIZE is not set");
  ExpectRefused({{"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}, "RANK is not set");
  ExpectRefused({{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "LOCAL_RANK is not set");
  ExpectRefused({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_LOCALID", "0"}}, "SLURM_PROCID is not set");
}

TEST(RankEnvironment, RefusesWhatIsNoNumber) {
  ExpectRefused({{"RANK", "one"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}, "RANK=\"one\"");
  ExpectRefused({{"RANK", "0"}, {"WORLD_SIZE", ""}, {"LOCAL_RANK", "0"}}, "WORLD_SIZE=\"\"");
  ExpectRefused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "-1"}}, "LOCAL_RANK=\"-1\"");
}

TEST(RankEnvironment, RefusesARankBeyondTheSize) {
  ExpectRefused({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}, "RANK=2: want less than WORLD_SIZE=2");
  ExpectRefused({{"RANK", "0"}, {"WORLD_SIZE", "0"}, {"LOCAL_RANK", "0"}}, "RANK=0: want less than WORLD_SIZE=0");
  ExpectRefused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "3"}}, "LOCAL_RANK=3: want less than");
}

TEST(RankEnvironment, LooksAtThisProcess) {
  setenv("RANK", "1", 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("LOCAL_RANK", "1", 1);
  const auto read = ReadRankEnvironment();
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK"}) unsetenv(name);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rank, 1);
}

}  // namespace
}  // namespace skein
