// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "absl/synchronization/mutex.h"
#include "tests/learner/rank_threads.h"

namespace skein {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<MeetingPlace> Find(const std::map<std::string, std::string>& variables) {
  return FindMeetingPlace([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(FindMeetingPlace, KnowsTorchrunAndSlurm) {
  const auto master = Find({{"MASTER_ADDR", "10.0.0.7"}, {"MASTER_PORT", "29500"}});
  ASSERT_TRUE(master.ok());
  EXPECT_EQ(master->host, "10.0.0.7");
  EXPECT_EQ(master->port, 29500);
  // torchrun's own store is there already.
  EXPECT_EQ(Find({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_RUN_ID", "x"}})->port, 29501);
  const auto slurm = Find({{"SLURM_STEP_NODELIST", "n[03-07,9],m1"}, {"SLURM_JOB_ID", "1000"}, {"SLURM_STEP_ID", "2"}});
  ASSERT_TRUE(slurm.ok()) << slurm.status();
  EXPECT_EQ(slurm->host, "n03");
  EXPECT_EQ(slurm->port, 20000 + (1000 * 31 + 2) % 20000);
  EXPECT_THAT(std::string(Find({}).status().message()), HasSubstr("set MASTER_ADDR and MASTER_PORT"));
  EXPECT_THAT(std::string(Find({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "x"}}).status().message()),
              HasSubstr("MASTER_PORT"));
}

TEST(FirstHostOf, ReadsSlurmsLists) {
  EXPECT_EQ(FirstHostOf("node"), "node");
  EXPECT_EQ(FirstHostOf("a1,b[2-3]"), "a1");
  EXPECT_EQ(FirstHostOf("b[2-3],a1"), "b2");
  EXPECT_EQ(FirstHostOf("b[007]"), "b007");
  EXPECT_EQ(FirstHostOf("b["), "");
}

TEST(InTurn, LetsTheFirstRankOfANodeGoBeforeTheOthers) {
  absl::Mutex mu;
  std::vector<int> order;
  RunRanks(3, [&](Collective* collective) {
    // Ranks 0 and 1 are on one node, rank 2 is on another one.
    FitRanks ranks;
    ranks.place = {collective->rank(), 3, collective->rank() == 1 ? 1 : 0};
    ranks.collective.reset(collective);
    const absl::Status status = InTurn(ranks, [&] {
      const absl::MutexLock lock(&mu);
      order.push_back(ranks.place.rank);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    ranks.collective.release();
  });
  EXPECT_EQ(order, (std::vector<int>{0, 2, 1}));
}

TEST(InTurn, TellsAllRanksThatOneFailed) {
  RunRanks(2, [&](Collective* collective) {
    FitRanks ranks;
    ranks.place = {collective->rank(), 2, collective->rank()};
    ranks.collective.reset(collective);
    const absl::Status status =
        InTurn(ranks, [&] { return collective->rank() == 0 ? absl::DataLossError("bad line") : absl::OkStatus(); });
    EXPECT_EQ(status.code(), collective->rank() == 0 ? absl::StatusCode::kDataLoss : absl::StatusCode::kAborted);
    ranks.collective.release();
  });
}

}  // namespace
}  // namespace skein
