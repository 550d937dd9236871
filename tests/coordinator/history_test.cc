// SPDX-License-Identifier: Apache-2.0
#include "coordinator/history.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "coordinator/message_bounds.h"
#include "coordinator/state_records.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::Pair;

v1::MemberStatus& AddMember(v1::StatusResponse* status, const std::string& id, const std::string& role) {
  v1::MemberStatus& member = *status->add_members();
  member.set_member_id(id);
  member.set_role(role);
  member.set_generation(1);
  return member;
}

v1::StatusResponse WithStage(double wait) {
  v1::StatusResponse status;
  (*AddMember(&status, "actor-1", "actor").mutable_report()->mutable_stage_seconds())["wait"] = wait;
  return status;
}

TEST(History, TakesTheRunsNumbers) {
  v1::StatusResponse status;
  v1::RunProgress& progress = *status.mutable_progress();
  progress.set_env_steps(100);
  progress.set_env_steps_per_second_10s(10);
  progress.set_env_steps_per_second_60s(60);
  progress.set_mean_episode_return(5);
  progress.set_mean_episode_length(50);
  progress.set_episodes(3);
  (*progress.mutable_losses())["any_name"] = 0.25;
  (*progress.mutable_episode_metrics())["success_rate"] = 0.75;
  (*progress.mutable_callback_metrics())["to_go"] = 3;
  progress.set_mean_policy_lag(0.5);
  AddMember(&status, "actor-1", "actor");
  AddMember(&status, "learner-0", "learner");
  History history;
  history.Add(status, absl::Seconds(7));
  ASSERT_EQ(history.points().size(), 1u);
  const History::Point& point = history.points()[0];
  EXPECT_EQ(point.seconds, 7);
  EXPECT_EQ(point.env_steps, 100);
  EXPECT_EQ(point.rate_10s, 10);
  EXPECT_EQ(point.rate_60s, 60);
  EXPECT_EQ(point.episode_return, 5);
  EXPECT_EQ(point.episode_length, 50);
  EXPECT_THAT(point.update_stats, ElementsAre(Pair("any_name", 0.25)));
  EXPECT_THAT(point.episode_metrics, ElementsAre(Pair("success_rate", 0.75)));
  EXPECT_THAT(point.callback_metrics, ElementsAre(Pair("to_go", 3)));
  EXPECT_EQ(point.policy_lag, 0.5);
  EXPECT_EQ(point.actors, 1);
  EXPECT_TRUE(std::isnan(point.efficiency));
}

TEST(History, EfficiencyIsOfThoseActorsThatKnowTheirLimit) {
  v1::StatusResponse status;
  for (const auto& [rate, limit] : {std::pair{30.0, 50.0}, {60.0, 100.0}, {1000.0, 0.0}}) {
    v1::MemberReport& report = *AddMember(&status, "actor-" + std::to_string(limit), "actor").mutable_report();
    report.set_env_steps_per_second(rate);
    report.set_limit_env_steps_per_second(limit);
  }
  History history;
  history.Add(status, absl::ZeroDuration());
  EXPECT_DOUBLE_EQ(history.newest().efficiency, 0.6);  // (30 + 60) / (50 + 100)
}

TEST(History, StaysBelowItsLimitAndCoversTheWholeRun) {
  History history;
  v1::StatusResponse status;
  constexpr int kSeconds = 5000;
  for (int second = 0; second < kSeconds; ++second) {
    history.Add(status, absl::Seconds(second));
    ASSERT_LE(history.points().size(), History::kMostPoints);
  }
  // 5000 points at every 8th: the strides before that would be 5000, 2500 and 1250.
  EXPECT_EQ(history.stride(), 8u);
  EXPECT_EQ(history.points().size(), 625u);
  for (size_t i = 0; i < history.points().size(); ++i) EXPECT_EQ(history.points()[i].seconds, 8.0 * i);
  EXPECT_EQ(history.newest().seconds, kSeconds - 1);
}

TEST(History, AddsUpStagesOfMembersThatComeAndGo) {
  History history;
  history.Add(WithStage(100), absl::Seconds(0));  // What was before is not of this time.
  EXPECT_THAT(history.newest().actor_stages, ElementsAre(Pair("wait", 0)));
  v1::StatusResponse status = WithStage(103);
  v1::MemberStatus& learner = AddMember(&status, "learner-0", "learner");
  (*learner.mutable_report()->mutable_stage_seconds())["update"] = 1;
  history.Add(status, absl::Seconds(1));
  EXPECT_THAT(history.newest().actor_stages, ElementsAre(Pair("wait", 3)));
  EXPECT_THAT(history.newest().learner_stages, ElementsAre(Pair("update", 0)));
  history.Add(v1::StatusResponse(), absl::Seconds(2));  // Both are gone.
  EXPECT_THAT(history.newest().actor_stages, ElementsAre(Pair("wait", 3)));
  status = WithStage(50);  // Another generation.
  status.mutable_members(0)->set_generation(2);
  history.Add(status, absl::Seconds(3));
  (*status.mutable_members(0)->mutable_report()->mutable_stage_seconds())["wait"] = 52;
  history.Add(status, absl::Seconds(4));
  EXPECT_THAT(history.newest().actor_stages, ElementsAre(Pair("wait", 5)));
  EXPECT_THAT(history.points()[1].actor_stages, ElementsAre(Pair("wait", 3)));
}

TEST(HistoryJson, HasColumnsOfEqualLength) {
  History history;
  v1::StatusResponse status = WithStage(1);
  history.Add(v1::StatusResponse(), absl::Seconds(0));
  history.Add(status, absl::Seconds(1));
  (*status.mutable_members(0)->mutable_report()->mutable_stage_seconds())["wait"] = 4;
  status.mutable_progress()->set_mean_episode_return(2.0 / 3);
  status.mutable_progress()->set_episodes(1);
  (*status.mutable_progress()->mutable_losses())["kl"] = 0.0123456789;
  history.Add(status, absl::Seconds(2));
  const nlohmann::json all = nlohmann::json::parse(HistoryJson(history, History::kMostPoints));
  EXPECT_EQ(all["stride"], 1);
  EXPECT_EQ(all["points"], 3);
  EXPECT_EQ(all["seconds"], (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(all["actor_stages"], (nlohmann::json{{"wait", {0.0, 0.0, 3.0}}}));
  EXPECT_TRUE(all["return"][1].is_null());  // No episode has ended.
  EXPECT_EQ(all["return"][2], 0.666667);
  EXPECT_EQ(all["update_stats"], (nlohmann::json{{"kl", {nullptr, nullptr, 0.0123457}}}));
  EXPECT_EQ(all["episode_metrics"], nlohmann::json::object());
  EXPECT_EQ(all["callback_metrics"], nlohmann::json::object());
  for (const char* column :
       {"env_steps", "rate_10s", "rate_60s", "return", "episode_length", "policy_lag", "actors", "efficiency"}) {
    EXPECT_EQ(all[column].size(), 3u) << column;
  }
  EXPECT_EQ(nlohmann::json::parse(HistoryJson(history, 2))["seconds"], (std::vector<double>{1, 2}));
}

TEST(HistoryJson, EndsWithTheNewestPointAlsoIfThatIsNotKept) {
  History history;
  for (int second = 0; second < 1004; ++second) history.Add(v1::StatusResponse(), absl::Seconds(second));
  // Every other one: 0, 2, ... 1002.
  EXPECT_EQ(nlohmann::json::parse(HistoryJson(history, 2))["seconds"], (std::vector<double>{1000, 1002, 1003}));
}

TEST(HistoryJson, IsEmptyBeforeTheFirstPointAndSurvivesTextThatIsNotUtf8) {
  EXPECT_EQ(nlohmann::json::parse(HistoryJson(History(), 10))["seconds"].size(), 0u);
  v1::StatusResponse status;
  (*AddMember(&status, "actor-1", "actor").mutable_report()->mutable_stage_seconds())["\xff"] = 1;
  History history;
  history.Add(status, absl::ZeroDuration());
  EXPECT_EQ(nlohmann::json::parse(HistoryJson(history, 10))["actor_stages"].size(), 1u);
}

TEST(HistoryJson, HasOnlySoManyNamesHoweverOftenALearnerChangesThem) {
  History history;
  for (int second = 0; second < 100; ++second) {
    v1::StatusResponse status;
    for (int i = 0; i < 10; ++i) {
      (*status.mutable_progress()->mutable_losses())[absl::StrCat("name", second, "_", i)] = 1;
    }
    history.Add(status, absl::Seconds(second));
  }
  const nlohmann::json stats = nlohmann::json::parse(HistoryJson(history, History::kMostPoints))["update_stats"];
  EXPECT_EQ(stats.size(), kMostNumbers);
  EXPECT_TRUE(stats.contains("name99_9"));
}

// What a store holds after the changes so far.
class Records {
 public:
  // Returns the number of changes.
  size_t Take(History* history, double unix_seconds) {
    const std::vector<StateChange> changes = history->TakeChanges(unix_seconds);
    for (const StateChange& change : changes) {
      EXPECT_FALSE(change.durable);
      if (change.value) {
        records_[change.key] = *change.value;
      } else {
        EXPECT_EQ(records_.erase(change.key), 1u) << change.key;
      }
    }
    return changes.size();
  }
  size_t size() const { return records_.size(); }
  std::vector<store::HistoryRecord> Load() const {
    std::map<std::string, std::string> all = records_;
    all["run"] = store::RunRecord().SerializeAsString();
    const auto parsed = ParseRecords(all);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return (*parsed)->history;
  }

 private:
  std::map<std::string, std::string> records_;
};

v1::StatusResponse StatusAt(int second) {
  v1::StatusResponse status = WithStage(2 * second);
  v1::RunProgress& progress = *status.mutable_progress();
  progress.set_env_steps(1000 * second);
  progress.set_mean_episode_return(second / 3.0);
  progress.set_mean_episode_length(10);
  progress.set_episodes(second / 10);  // None in the first ten seconds.
  (*progress.mutable_losses())["kl"] = 1.0 / (1 + second);
  return status;
}

constexpr double kUnix = 1.7e9;

// Runs for some seconds, and is kept every ten of them.
void RunFor(int seconds, History* history, Records* kept) {
  for (int second = 0; second < seconds; ++second) {
    history->Add(StatusAt(second), absl::Seconds(second));
    if (second % 10 != 0) continue;
    // Either the last record and perhaps a new one, or all after the points were thinned out.
    EXPECT_LE(kept->Take(history, kUnix), History::kMostPoints / History::kPointsPerRecord + 1);
    EXPECT_LE(kept->size(), History::kMostPoints / History::kPointsPerRecord + 1);
  }
}

TEST(HistoryRecords, IsTheSameInTheNextCoordinatorAndGoesOn) {
  for (const int seconds : {1, 49, 50, 51, 999, 1001, 1002, 1050, 5000}) {
    History history;
    Records kept;
    RunFor(seconds, &history, &kept);
    kept.Take(&history, kUnix);
    EXPECT_EQ(kept.Take(&history, kUnix), 0u);  // Nothing has changed.
    History next;
    next.Restore(kept.Load(), kUnix + seconds + 30, false);
    EXPECT_EQ(HistoryJson(next, History::kMostPoints), [&] {
      // Without the newest point, which was not kept.
      History same;
      for (int second = 0; second <= history.points().back().seconds; ++second) {
        same.Add(StatusAt(second), absl::Seconds(second));
      }
      return HistoryJson(same, History::kMostPoints);
    }()) << seconds;
    next.Add(StatusAt(seconds), absl::Seconds(2));
    EXPECT_EQ(next.newest().seconds, seconds + 32);  // By the time of day.
    EXPECT_EQ(next.stride(), history.stride());
    // Sums go on: what is reported first to a coordinator is not of its time.
    EXPECT_EQ(next.newest().actor_stages, history.points().back().actor_stages);
    kept.Take(&next, kUnix + seconds + 30);
    EXPECT_EQ(kept.Load().size(), (next.points().size() + 49) / 50);
  }
}

TEST(HistoryRecords, PausesBetweenSessionsDoNotCount) {
  History history;
  Records kept;
  RunFor(100, &history, &kept);
  kept.Take(&history, kUnix);
  History next;
  next.Restore(kept.Load(), kUnix + 1e6, true);
  next.Add(StatusAt(0), absl::ZeroDuration());
  EXPECT_EQ(next.newest().seconds, 100);
  EXPECT_EQ(next.points().size(), 101u);
}

TEST(HistoryRecords, AClockThatWasSetBackDoesNotTurnItBack) {
  History history;
  Records kept;
  RunFor(100, &history, &kept);
  kept.Take(&history, kUnix);
  History next;
  next.Restore(kept.Load(), kUnix - 1e6, false);
  next.Add(StatusAt(0), absl::ZeroDuration());
  EXPECT_EQ(next.newest().seconds, 100);
}

TEST(HistoryRecords, ARecordThatMakesNoSenseIsLeftOut) {
  History history;
  Records kept;
  RunFor(150, &history, &kept);
  kept.Take(&history, kUnix);
  std::vector<store::HistoryRecord> records = kept.Load();
  ASSERT_EQ(records.size(), 3u);
  records[1].mutable_columns(3)->add_values(1);  // One value too many.
  History next;
  next.Restore(records, kUnix, false);
  EXPECT_EQ(next.points().size(), 100u);
  records[1] = records[2];  // The same points twice.
  History once;
  once.Restore(records, kUnix, false);
  EXPECT_EQ(once.points().size(), 100u);
  for (const uint64_t stride : {uint64_t{0}, uint64_t{1} << 63, ~uint64_t{0}}) {
    for (store::HistoryRecord& record : records) record.set_stride(stride);
    History none;
    none.Restore(records, kUnix, false);
    EXPECT_EQ(none.points().size(), 0u) << stride;
    for (int second = 0; second < 2000; ++second) none.Add(StatusAt(second), absl::Seconds(second));
    EXPECT_EQ(none.stride(), 2u);
  }
}

}  // namespace
}  // namespace skein
