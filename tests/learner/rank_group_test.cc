// SPDX-License-Identifier: Apache-2.0
#include "learner/ranks/rank_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"

namespace skein {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = RankDecision::Kind;

v1::RankRound Ready(int64_t columns) {
  v1::RankRound round;
  round.set_ready(true);
  round.set_columns(columns);
  return round;
}

v1::RankRound Waiting(double idle_seconds) {
  v1::RankRound round;
  round.set_idle_seconds(idle_seconds);
  return round;
}

TEST(RankDecision, TrainsWhenAllAreReadyWithEachRanksColumnsAfterThoseOfLowerRanks) {
  const std::vector<v1::RankRound> rounds = {Ready(3), Ready(0), Ready(5)};
  for (const auto& [rank, offset] : std::map<int, int64_t>{{0, 0}, {1, 3}, {2, 3}}) {
    const RankDecision decision = Decide(rounds, rank, absl::Seconds(10));
    EXPECT_EQ(decision.kind, Kind::kTrain);
    EXPECT_EQ(decision.column_offset, offset);
    EXPECT_EQ(decision.total_columns, 8);
  }
}

TEST(RankDecision, WaitsWhileDataKeepArriving) {
  EXPECT_EQ(Decide({Ready(3), Waiting(9.9)}, 0, absl::Seconds(10)).kind, Kind::kWait);
  EXPECT_EQ(Decide({Ready(3), Waiting(11), Waiting(1)}, 0, absl::Seconds(10)).kind, Kind::kWait);
}

TEST(RankDecision, GoesOnShortWhenNothingArrivesAtAnyRankThatIsNotReady) {
  EXPECT_EQ(Decide({Ready(3), Waiting(10), Waiting(12)}, 1, absl::Seconds(10)).kind, Kind::kGoOnShort);
}

TEST(RankDecision, WaitsForEverWhenNobodyHasData) {
  EXPECT_EQ(Decide({Waiting(1000), Waiting(1000)}, 0, absl::Seconds(10)).kind, Kind::kWait);
}

TEST(RankDecision, StopsWhenAnyRankIsToStopEvenIfAllAreReady) {
  v1::RankRound stop = Ready(3);
  stop.set_stop(true);
  EXPECT_EQ(Decide({Ready(3), stop}, 0, absl::Seconds(10)).kind, Kind::kStop);
}

v1::RankRound WithJoiningRank(v1::RankRound round) {
  round.set_rank_wants_to_join(true);
  return round;
}

TEST(RankDecision, AJoiningRankIsAdmittedAfterTheIterationThatAllHaveDataFor) {
  EXPECT_FALSE(Decide({Ready(3), Ready(2)}, 0, absl::Seconds(10)).admits);
  const RankDecision decision = Decide({WithJoiningRank(Ready(3)), Ready(2)}, 1, absl::Seconds(10));
  EXPECT_EQ(decision.kind, Kind::kTrain);
  EXPECT_TRUE(decision.admits);
  EXPECT_THAT(decision.columns, ElementsAre(3, 2));
}

TEST(RankDecision, AJoiningRankIsAdmittedAtOnceWhereNoDataCome) {
  EXPECT_EQ(Decide({WithJoiningRank(Waiting(0.5)), Waiting(20)}, 0, absl::Seconds(10)).kind, Kind::kWait);
  EXPECT_EQ(Decide({WithJoiningRank(Waiting(1)), Waiting(20)}, 0, absl::Seconds(10)).kind, Kind::kAdmit);
  EXPECT_EQ(Decide({WithJoiningRank(Ready(3)), Waiting(1)}, 0, absl::Seconds(10)).kind, Kind::kAdmit);
}

// Barriers among threads: each opens when all have come, or fails when `patience` is over.
class Coordinator {
 public:
  explicit Coordinator(size_t members, absl::Duration patience = absl::Seconds(20))
      : members_(members), patience_(patience) {}
  int calls() const {
    absl::MutexLock lock(&mu_);
    return calls_;
  }
  absl::StatusOr<CoordinatorClient::BarrierResult> Arrive(const std::string& member,
                                                          const CoordinatorClient::Barrier& barrier) {
    absl::MutexLock lock(&mu_);
    ++calls_;
    auto& arrived = arrived_[{barrier.name, barrier.generation}];
    arrived[member] = barrier.payload;
    const auto complete = [&] { return arrived.size() == members_; };
    if (!mu_.AwaitWithTimeout(absl::Condition(&complete), patience_)) {
      return absl::DeadlineExceededError("barrier: learner-1 is absent");
    }
    CoordinatorClient::BarrierResult result;
    for (const auto& [id, payload] : arrived) {
      result.members.push_back(id);
      result.payloads.push_back(payload);
    }
    return result;
  }

 private:
  const size_t members_;
  const absl::Duration patience_;
  mutable absl::Mutex mu_;
  int calls_ = 0;
  std::map<std::pair<std::string, uint64_t>, std::map<std::string, std::string>> arrived_;
};

class Client final : public CoordinatorClient {
 public:
  // Ids sort unlike ranks, as "learner-10" and "learner-2" do.
  Client(Coordinator* coordinator, int rank) : coordinator_(coordinator), id_("learner-" + std::to_string(9 - rank)) {}
  const v1::RunConfig& config() const override { return config_; }
  Membership membership() const override { return {}; }
  absl::Status Leave() override { return absl::OkStatus(); }
  absl::StatusOr<BarrierResult> ArriveAtBarrier(const Barrier& barrier) override {
    return coordinator_->Arrive(id_, barrier);
  }

 private:
  Coordinator* const coordinator_;
  const std::string id_;
  const v1::RunConfig config_;
};

RankGroup::Options OptionsOf(int rank, int size) {
  RankGroup::Options options;
  options.rank = rank;
  options.size = size;
  options.coordinator = "127.0.0.1:1";
  options.device = "cpu";
  options.form_timeout = options.meeting_timeout = options.timeout = absl::Seconds(20);
  return options;
}

// Runs `body` as each of two ranks.
void OnTwoRanks(const std::function<void(RankGroup*)>& body) {
  Coordinator coordinator(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&coordinator, &body, rank] {
      Client client(&coordinator, rank);
      auto group = RankGroup::Form(OptionsOf(rank, 2), &client);
      ASSERT_TRUE(group.ok()) << group.status();
      body(group->get());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RankGroup, MeetsWithEveryRanksRoundInOrderOfRank) {
  OnTwoRanks([](RankGroup* group) {
    for (int64_t i = 0; i < 3; ++i) {
      const auto rounds = group->Meet(Ready(10 * i + group->rank()));
      ASSERT_TRUE(rounds.ok()) << rounds.status();
      ASSERT_EQ(rounds->size(), 2u);
      EXPECT_EQ(rounds->at(0).columns(), 10 * i);
      EXPECT_EQ(rounds->at(1).columns(), 10 * i + 1);
    }
  });
}

TEST(RankGroup, GathersWhatEveryRankSays) {
  OnTwoRanks([](RankGroup* group) {
    v1::RankIteration mine;
    mine.add_episode_length(group->rank() + 7);
    const auto all = group->Gather(mine);
    ASSERT_TRUE(all.ok()) << all.status();
    ASSERT_EQ(all->size(), 2u);
    EXPECT_THAT(all->at(0).episode_length(), ElementsAre(7));
    EXPECT_THAT(all->at(1).episode_length(), ElementsAre(8));
  });
}

TEST(RankGroup, ARankThatDoesNotComeIsNamed) {
  Coordinator coordinator(2, absl::Milliseconds(20));
  Client client(&coordinator, 0);
  RankGroup::Options options = OptionsOf(0, 2);
  options.form_timeout = absl::Seconds(1);
  options.stopping = [] { return false; };
  const absl::Status status = RankGroup::Form(options, &client).status();
  EXPECT_GT(coordinator.calls(), 1);  // It was tried again until the time was over.
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("learner-1 is absent"));
}

TEST(RankGroup, ARankThatIsGoneIsAborted) {
  EXPECT_TRUE(absl::IsAborted(AsLostRank(absl::UnavailableError("rank 1 has closed its connection"))));
  EXPECT_TRUE(absl::IsAborted(AsLostRank(absl::DeadlineExceededError("late"))));
  EXPECT_TRUE(absl::IsInternal(AsLostRank(absl::InternalError("digests differ"))));
  EXPECT_TRUE(AsLostRank(absl::OkStatus()).ok());
}

TEST(RankGroup, AGpuThatIsNotThereIsSaidBeforeAnybodyIsWaitedFor) {
  Coordinator coordinator(2);
  Client client(&coordinator, 0);
  RankGroup::Options options = OptionsOf(0, 2);
  options.device = "cuda:4096";
  EXPECT_TRUE(absl::IsFailedPrecondition(RankGroup::Form(options, &client).status()));
  EXPECT_EQ(coordinator.calls(), 0);
}

TEST(LocalHost, TowardsTheLoopbackIsTheLoopback) {
  EXPECT_EQ(LocalHostTowards("127.0.0.1:7070"), "127.0.0.1");
  EXPECT_EQ(LocalHostTowards("no address"), "");
}

}  // namespace
}  // namespace skein
