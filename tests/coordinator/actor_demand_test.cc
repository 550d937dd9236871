// SPDX-License-Identifier: Apache-2.0
#include "coordinator/actor_demand.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::HasSubstr;

// A run whose iterations cost one actor `collect` seconds and the learner `update`, and what a coordinator knows of it.
class ModelRun {
 public:
  ModelRun(v1::SyncMode mode, double collect, double update)
      : mode_(mode), collect_(collect), update_(update), demand_(Config(mode)) {
    status_.mutable_progress()->set_state(v1::RUN_STATE_TRAINING);
    SetRanks(1);
  }

  static v1::RunConfig Config(v1::SyncMode mode) {
    v1::RunConfig config;
    config.mutable_sync()->set_mode(mode);
    config.mutable_rollout()->set_num_envs(1600);
    config.mutable_rollout()->set_envs_per_runner(16);  // 100 env groups.
    return config;
  }

  void SetRanks(int ranks) {
    ranks_ = ranks;
    SetActors(actors_);
  }
  // The actors that were there have gone.
  void SetActors(int actors, uint32_t runners = 1) {
    actors_ = actors;
    ++generation_;
    status_.clear_members();
    for (int i = 0; i < ranks_ + actors; ++i) {
      v1::MemberStatus* member = status_.add_members();
      member->set_role(i < ranks_ ? "learner" : "actor");
      member->set_member_id(member->role() + std::to_string(i));
      member->set_generation(generation_);
      if (i >= ranks_) member->set_runners(runners);
    }
    actors_work_ = actors_wait_ = 0;
    Observe();
  }
  // Trains until `seconds` have passed, and reports at the end of each iteration.
  void Train(double seconds) {
    for (const double until = now_ + seconds; now_ < until;) {
      const double collect = collect_ / actors_;
      const double wait = mode_ == v1::SYNC_MODE_ON_POLICY ? collect : std::max(0.0, collect - update_);
      now_ += wait + update_;
      wait_ += wait;
      work_ += update_;
      actors_work_ += collect;
      actors_wait_ += wait + update_ - collect;
      status_.mutable_progress()->set_iteration(status_.progress().iteration() + 1);
      Observe();
    }
  }
  void SetState(v1::RunState state) {
    status_.mutable_progress()->set_state(state);
    Observe();
  }

  // As an autoscaler does, until nothing changes any more. Returns how many changes there were.
  int Autoscale(const ActorBounds& bounds) {
    int changes = 0;
    for (; changes < 20; ++changes) {
      Train(100);
      const int wanted = static_cast<int>(demand_.Wanted(bounds));
      if (wanted == actors_) break;
      SetActors(wanted);
    }
    return changes;
  }

  int actors() const { return actors_; }
  bool active() const { return demand_.active(); }
  uint32_t Wanted(const ActorBounds& bounds = {}) const { return demand_.Wanted(bounds); }

 private:
  void Observe() {
    auto& stages = *status_.mutable_progress()->mutable_stage_seconds();
    stages["barrier"] = wait_;
    stages["update"] = 0.75 * work_;
    stages["publish"] = 0.25 * work_;
    for (v1::MemberStatus& member : *status_.mutable_members()) {
      if (member.role() != "actor") continue;
      auto& seconds = *member.mutable_report()->mutable_stage_seconds();
      seconds["env_step"] = actors_work_;
      seconds["wait"] = actors_wait_;
    }
    status_.set_uptime_seconds(now_);
    demand_.Observe(status_);
  }

  const v1::SyncMode mode_;
  const double collect_, update_;
  ActorDemand demand_;
  v1::StatusResponse status_;
  int actors_ = 0, ranks_ = 0;
  uint64_t generation_ = 0;
  double now_ = 0, wait_ = 0, work_ = 0;      // Of the learner.
  double actors_work_ = 0, actors_wait_ = 0;  // Of each actor.
};

TEST(ActorsForWaitRatio, SharesTheWorkSoThatTheWaitIsTheWantedShare) {
  // B = 4 s, U = 1 s: w = 0.8. t = 0.2 wants B' = 0.25 s, a sixteenth: 2 x 16 actors.
  EXPECT_NEAR(ActorsForWaitRatio({2, 0.8, 0.8}, 0.2, true), 32, 1e-9);
  EXPECT_NEAR(ActorsForWaitRatio({7, 0.2, 0.2}, 0.2, true), 7, 1e-9);
  EXPECT_EQ(ActorsForWaitRatio({7, 0, 0}, 0.2, true), 0);
  // Collecting takes B + U = 5 s all the same, and may take B' + U = 1.25 s: 2 x 4 actors.
  EXPECT_NEAR(ActorsForWaitRatio({2, 0.8, 1}, 0.2, false), 8, 1e-9);
  // The learner never waits, and the actors half of their time: half as many work all the time, and the learner may
  // wait a little.
  EXPECT_NEAR(ActorsForWaitRatio({10, 0, 0.5}, 0.2, false), 4, 1e-9);
  EXPECT_EQ(ActorsForWaitRatio({1, 1, 1}, 0.2, false), std::numeric_limits<double>::infinity());
}

TEST(ActorDemand, KeepsWhatThereIsUntilItHasMeasured) {
  ModelRun run(v1::SYNC_MODE_ON_POLICY, 10, 1);
  EXPECT_EQ(run.Wanted(), 1u);  // Somebody must begin.
  run.SetActors(4);
  EXPECT_EQ(run.Wanted(), 4u);
  run.Train(15);  // Less than the window.
  EXPECT_EQ(run.Wanted(), 4u);
  run.Train(20);
  EXPECT_EQ(run.Wanted(), 8u);
}

TEST(ActorDemand, AStarvedLearnerWantsMoreAndASaturatedOneFewer) {
  ModelRun starved(v1::SYNC_MODE_OVERLAPPED, 40, 1);
  starved.SetActors(20);  // C = 2 s: w = 1/2.
  starved.Train(60);
  EXPECT_EQ(starved.Wanted(), 32u);  // 20 x 0.8 / 0.5
  ModelRun saturated(v1::SYNC_MODE_OVERLAPPED, 15, 1);
  saturated.SetActors(20);  // C = 0.75 s: actors work for three quarters of their time.
  saturated.Train(60);
  EXPECT_EQ(saturated.Wanted(), 12u);  // 20 x 0.75 x 0.8
}

TEST(ActorDemand, LeadsToTheNumberThatMeetsTheRatioAndStaysThere) {
  for (const v1::SyncMode mode : {v1::SYNC_MODE_ON_POLICY, v1::SYNC_MODE_OVERLAPPED, v1::SYNC_MODE_ASYNC}) {
    for (const int start : {1, 5, 40, 100}) {
      for (const double collect : {0.5, 3.0, 20.0}) {
        ModelRun run(mode, collect, 1);
        run.SetActors(start);
        // 1 -> 2 -> 4 ... -> 64 -> 100 at the most, and a correction at the end.
        EXPECT_LE(run.Autoscale({}), 8) << mode << ", from " << start << ", " << collect << " s";
        // In the end collecting takes a quarter of an update, or 5/4 of it where it goes on meanwhile.
        const double ideal = std::max(1.0, collect / (mode == v1::SYNC_MODE_ON_POLICY ? 0.25 : 1.25));
        EXPECT_GE(run.actors(), std::floor(ideal / (1 + ActorDemand::kTolerance))) << mode << ", from " << start;
        EXPECT_LE(run.actors(), std::ceil(ideal * (1 + ActorDemand::kTolerance))) << mode << ", from " << start;
      }
    }
  }
}

TEST(ActorDemand, DoublesOrHalvesAtMost) {
  ModelRun starved(v1::SYNC_MODE_ON_POLICY, 1000, 1);
  starved.SetActors(3);
  starved.Train(2000);
  EXPECT_EQ(starved.Wanted(), 6u);
  ModelRun saturated(v1::SYNC_MODE_ON_POLICY, 0.001, 1);
  saturated.SetActors(9);
  saturated.Train(50);
  EXPECT_EQ(saturated.Wanted(), 5u);  // 4.5
}

TEST(ActorDemand, IsContentWithinATenth) {
  ModelRun run(v1::SYNC_MODE_OVERLAPPED, 26.5, 1);
  run.SetActors(20);  // 26.5 / 1.25 = 21.2 would be exact.
  run.Train(60);
  EXPECT_EQ(run.Wanted(), 20u);
}

TEST(ActorDemand, AnAnswerStandsWhileActorsComeAndGo) {
  ModelRun run(v1::SYNC_MODE_OVERLAPPED, 10, 1);
  run.SetActors(4);
  run.Train(60);
  EXPECT_EQ(run.Wanted(), 8u);
  for (const int actors : {5, 6, 0, 3}) {
    run.SetActors(actors);
    if (actors > 0) run.Train(15);
    EXPECT_EQ(run.Wanted(), 8u);
  }
  run.Train(60);
  EXPECT_EQ(run.Wanted(), 6u);  // Twice the three that there are.
}

TEST(ActorDemand, KeepsWithinTheBoundsOfWhoAsks) {
  ModelRun run(v1::SYNC_MODE_OVERLAPPED, 40, 1);
  run.SetActors(20);
  run.Train(60);
  EXPECT_EQ(run.Wanted({0, 25, 0.2}), 25u);
  EXPECT_EQ(run.Wanted({50, 60, 0.2}), 50u);
  EXPECT_EQ(run.Wanted({0, 100, 0.5}), 20u);  // w is 1/2 already.
}

TEST(ActorDemand, WantsNoMoreThanCanWorkAtOnceAndOneForEachRank) {
  ModelRun starved(v1::SYNC_MODE_OVERLAPPED, 10000, 1);
  starved.SetActors(8, /*runners=*/10);
  starved.Train(5000);
  EXPECT_EQ(starved.Wanted(), 10u);  // 100 env groups for ten runners each.
  ModelRun saturated(v1::SYNC_MODE_OVERLAPPED, 0.01, 1);
  saturated.SetRanks(4);
  saturated.SetActors(6);
  saturated.Train(50);
  EXPECT_EQ(saturated.Wanted(), 4u);
}

TEST(ActorDemand, ARunThatIsOverNeedsNobody) {
  ModelRun run(v1::SYNC_MODE_OVERLAPPED, 40, 1);
  run.SetActors(20);
  run.Train(60);
  for (const v1::RunState state : {v1::RUN_STATE_FINISHED, v1::RUN_STATE_STOPPED, v1::RUN_STATE_FAILED}) {
    run.SetState(state);
    EXPECT_FALSE(run.active());
    EXPECT_EQ(run.Wanted(), 0u);
    EXPECT_EQ(run.Wanted({2, 60, 0.2}), 2u);
  }
  run.SetState(v1::RUN_STATE_STARTING);  // Started again.
  EXPECT_TRUE(run.active());
  EXPECT_EQ(run.Wanted(), 32u);
  ModelRun tensors(v1::SYNC_MODE_ON_DEVICE, 1, 1);
  EXPECT_EQ(tensors.Wanted(), 0u);
}

TEST(ActorBounds, AreReadFromTheMetadataOfATrigger) {
  const auto bounds = ParseActorBounds(
      {{"scalerAddress", "skein:7070"}, {"minActors", "2"}, {"maxActors", "64"}, {"targetWaitRatio", "0.35"}});
  ASSERT_TRUE(bounds.ok()) << bounds.status();
  EXPECT_EQ(bounds->min_actors, 2u);
  EXPECT_EQ(bounds->max_actors, 64u);
  EXPECT_EQ(bounds->wait_ratio, 0.35);
  const auto defaults = ParseActorBounds({});
  ASSERT_TRUE(defaults.ok());
  EXPECT_EQ(defaults->min_actors, 0u);
  EXPECT_EQ(defaults->wait_ratio, 0.2);
}

TEST(ActorBounds, SayWhichKeyIsWrong) {
  const auto message = [](const std::map<std::string, std::string>& metadata) {
    const auto status = ParseActorBounds(metadata).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(message({{"minActors", "-1"}}), HasSubstr("minActors: want a whole number from 0, got '-1'"));
  EXPECT_THAT(message({{"maxActors", "many"}}), HasSubstr("maxActors: want a whole number from 0, got 'many'"));
  EXPECT_THAT(message({{"minActors", "3"}, {"maxActors", "2"}}), HasSubstr("minActors is 3, more than maxActors, 2"));
  for (const char* ratio : {"0", "1", "nan", "half"}) {
    EXPECT_THAT(message({{"targetWaitRatio", ratio}}), HasSubstr("targetWaitRatio: want a number between 0 and 1"));
  }
}

}  // namespace
}  // namespace skein
