// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "sweep/search.h"
#include "tests/cli/scratch_folder.h"

// Whole searches with trainings that a script answers, on a clock of its own, with a journal on the disk.
namespace skein {

// Trainings whose metric is their point's first value x (1 + steps / 1000), plus the seed. A job ends when the test
// lets it, in any order.
class FakeLauncher : public Launcher {
 public:
  explicit FakeLauncher(uint32_t slots) : slots_(slots) {}
  uint32_t free_slots() const override { return slots_ - static_cast<uint32_t>(active_.size()); }
  double cores_per_slot() const override { return 1; }
  absl::Status Start(const Job& job) override {
    EXPECT_FALSE(IsActive(job.run)) << "started twice";
    EXPECT_LT(steps_[job.run], job.until) << "run twice";
    if (folders_in_use > 0) return --folders_in_use, absl::UnavailableError("in use by another process");
    active_[job.run] = job;
    points_[job.run] = *job.point[0];
    seeds_[job.run] = job.seed;
    ++starts;
    return absl::OkStatus();
  }
  bool IsActive(const RunKey& run) const override { return active_.count(run) > 0; }
  void Stop(const RunKey& run) override {
    if (IsActive(run)) ends_.push_back({run, JobEnd::How::kInterrupted, "", absl::Seconds(1), steps_[run]});
    active_.erase(run);
  }
  std::vector<JobEnd> Poll() override { return std::exchange(ends_, {}); }
  absl::Duration ActiveTime() const override { return absl::ZeroDuration(); }
  absl::StatusOr<std::optional<double>> Value(const RunKey& run, uint64_t steps, bool at_rest) override {
    if (steps_[run] < steps || (at_rest && IsActive(run))) return std::nullopt;
    if (steps < value_from_) return std::numeric_limits<double>::quiet_NaN();
    return points_[run] * (1 + static_cast<double>(steps) / 1000) + static_cast<double>(seeds_[run]);
  }
  uint64_t Steps(const RunKey& run) override { return steps_[run]; }
  absl::Status Copy(const RunKey& from, const Job& to) override {
    if (steps_[to.run] > 0) return absl::OkStatus();
    EXPECT_FALSE(IsActive(from));
    steps_[to.run] = steps_[from];
    copies.push_back(absl::StrCat(from.trial, "->", to.run.trial, "@", steps_[from]));
    return absl::OkStatus();
  }

  // Ends the n-th of the active jobs.
  void End(size_t index, JobEnd::How how = JobEnd::How::kDone, uint64_t steps = 0) {
    auto it = std::next(active_.begin(), static_cast<ptrdiff_t>(index));
    if (how == JobEnd::How::kDone) steps = it->second.until;
    steps_[it->first] = std::max(steps_[it->first], steps);
    ends_.push_back({it->first, how, "it fell over", absl::Seconds(10), steps_[it->first]});
    active_.erase(it);
  }
  size_t active() const { return active_.size(); }
  uint64_t SeedOf(const RunKey& run) { return seeds_[run]; }
  // Trains the first of the active jobs further; lets it end where it should.
  void Train(uint64_t steps) {
    const auto& [run, job] = *active_.begin();
    if (steps_[run] + steps >= job.until) return End(0);
    steps_[run] += steps;
  }
  // Before so many steps the metric has no value.
  void SetValueFrom(uint64_t steps) { value_from_ = steps; }
  // What a crash of the sweep leaves.
  void Crash() {
    active_.clear();
    ends_.clear();
  }

  int starts = 0;
  int folders_in_use = 0;  // So many starts find their folder in use.
  std::vector<std::string> copies;

 private:
  uint32_t slots_;
  std::map<RunKey, Job> active_;
  std::map<RunKey, double> points_;
  std::map<RunKey, uint64_t> seeds_, steps_;
  std::vector<JobEnd> ends_;
  uint64_t value_from_ = 0;
};

class SearchTest : public testing::Test {
 protected:
  SearchTest() : launcher_(3) {
    Parameter x;
    x.path = "ppo.lr";
    x.kind = Parameter::Kind::kReal;
    x.low = 1;
    x.high = 2;
    file_.space.parameters = {x};
    file_.config.set_name("s");
    file_.config.set_goal(v1::SWEEP_GOAL_MAXIMIZE);
    options_.max_trials = 8;
    options_.retry_after = absl::Seconds(1);
  }

  // `interval_steps`, `quantile`: of a population.
  void Open(v1::SweepSchedule kind, uint64_t interval_steps = 200, double quantile = 0.25) {
    v1::SweepConfig config;
    config.set_seed(1);
    config.mutable_scheduler()->set_kind(kind);
    config.mutable_scheduler()->set_min_steps(100);
    config.mutable_scheduler()->set_reduction(2);
    config.mutable_scheduler()->set_interval_steps(interval_steps);
    config.mutable_scheduler()->set_population(4);
    config.mutable_scheduler()->set_quantile(quantile);
    config.mutable_scheduler()->set_min_trials(2);
    scheduler_ = MakeScheduler(config, 400);
    ASSERT_TRUE(Restart());
  }

  // As after kill -9: all that is left is the journal, and the trainings' folders. False: the journal could not be
  // written.
  bool Restart(Journal::Fault fault = {}) {
    search_ = nullptr;
    record_ = nullptr;
    launcher_.Crash();
    auto record = SweepRecord::Open(journal_, file_, "one", std::move(fault));
    if (!record.ok()) return false;
    record_ = *std::move(record);
    suggester_ = std::make_unique<RandomSuggester>(file_.space, 1, [](const Point&) { return true; });
    search_ =
        std::make_unique<Search>(options_, &file_.space, scheduler_.get(), suggester_.get(), record_.get(), &launcher_);
    return true;
  }

  void Step() {
    now_ += absl::Milliseconds(100);
    ASSERT_EQ(search_->Step(now_), absl::OkStatus());
  }

  // Lets random jobs end until the search is done; with `crashes` it is started anew now and then.
  void RunToEnd(uint32_t seed, bool crashes = false) {
    std::mt19937 random(seed);
    for (int round = 0; round < 10000 && !search_->done(); ++round) {
      Step();
      if (launcher_.active() > 0 && random() % 2 == 0) launcher_.End(random() % launcher_.active());
      if (crashes && random() % 5 == 0) {
        ASSERT_TRUE(Restart());
      }
    }
    EXPECT_TRUE(search_->done());
  }

  const std::vector<Trial>& trials() const { return search_->study().trials(); }
  std::set<double> PointsAt(uint32_t rung) const {
    std::set<double> points;
    for (const Trial& one : trials()) {
      if (one.has_result(rung)) points.insert(*one.point[0]);
    }
    return points;
  }

  const ScratchFolder folder_;
  std::string journal_ = folder_.path() + "/journal.log";
  SweepFile file_;
  Search::Options options_;
  FakeLauncher launcher_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Suggester> suggester_;
  std::unique_ptr<SweepRecord> record_;
  std::unique_ptr<Search> search_;
  absl::Duration now_;
};

}  // namespace skein
