// SPDX-License-Identifier: Apache-2.0
// A sweep that ends at any of its writes goes on to the same results.
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/sweep/scripted_sweep.h"

namespace skein {
namespace {

struct Script {
  const char* name;
  v1::SweepSchedule kind;
  uint32_t max_trials;
  uint32_t seeds;
};

class SearchCrash : public SearchTest, public testing::WithParamInterface<Script> {
 protected:
  // In memory, where there is such a folder: a disk would be waited for at each write.
  SearchCrash() {
    if (access("/dev/shm", W_OK) == 0) journal_ = absl::StrCat("/dev/shm/skein-search-crash-", getpid());
  }
  ~SearchCrash() override {
    record_ = nullptr;
    unlink(journal_.c_str());
  }

  void Begin() {
    unlink(journal_.c_str());
    launcher_ = FakeLauncher(1);
    launcher_.SetValueFrom(150);
    options_.max_trials = GetParam().max_trials;
    options_.seeds = GetParam().seeds;
    options_.seeds_by_group = GetParam().kind == v1::SWEEP_SCHEDULE_POPULATION;
    // The third trial of the sampler is refused.
    const Point refused = *DrawPoint(file_.space, 1, 2, [](const Point&) { return true; });
    options_.admits = [refused](const Point& point) { return point != refused; };
    Open(GetParam().kind);
  }

  // The first of the jobs trains a bit in each round. False: the journal could not be written.
  bool Carry() {
    for (int round = 0; round < 1000 && !search_->done(); ++round) {
      now_ += absl::Milliseconds(100);
      if (!search_->Step(now_).ok()) return false;
      if (launcher_.active() > 0) launcher_.Train(100);
    }
    EXPECT_TRUE(search_->done()) << "it waits for ever";
    return true;
  }

  std::string Results() const {
    std::string text;
    for (const Trial& one : trials()) {
      absl::StrAppend(&text, one.number, " state ", static_cast<int>(one.state), " group ", one.group, " why ",
                      one.why);
      if (one.origin) absl::StrAppend(&text, " from ", one.origin->trial, "@", one.origin->rung);
      absl::StrAppend(&text, " x ", *one.point[0]);
      for (const auto& [rung, value] : one.results) absl::StrAppend(&text, " ", rung, ": ", value);
      absl::StrAppend(&text, "\n");
    }
    return text;
  }

  // What Optuna makes of the journal has each result, and an end for each trial.
  void ExpectOptunaHasAll() const {
    std::map<uint32_t, std::map<uint64_t, double>> values;
    std::map<uint32_t, int> states;
    uint32_t count = 0;
    std::ifstream file(journal_);
    for (std::string line; std::getline(file, line);) {
      const auto record = nlohmann::json::parse(line);
      if (record["op_code"] == 4) states[count++] = record["state"];
      if (record["op_code"] == 6) states[record["trial_id"]] = record["state"];
      if (record["op_code"] == 7) values[record["trial_id"]][record["step"]] = record["intermediate_value"];
    }
    ASSERT_EQ(count, trials().size());
    for (const Trial& one : trials()) {
      EXPECT_EQ(states[one.number], static_cast<int>(one.state));
      for (const auto& [rung, value] : one.results) {
        if (!std::isfinite(value)) continue;
        const uint64_t steps = scheduler_->rungs(one.group)[rung];
        ASSERT_EQ(values[one.number].count(steps), 1u) << one.number << " at " << steps;
        EXPECT_EQ(values[one.number][steps], value);
      }
    }
  }
};

TEST_P(SearchCrash, AtEachWriteLosesNothingAndRunsNothingTwice) {
  Begin();
  ASSERT_TRUE(Carry());
  const std::string expected = Results();
  const int starts = launcher_.starts;
  for (const Trial& one : trials()) EXPECT_NE(one.state, TrialState::kRunning) << expected;
  ExpectOptunaHasAll();
  // The n-th write fails after `kept` of its records. The last write that is to fail never comes.
  size_t records = 0;
  bool came = true;
  for (int n = 1; came; ++n) {
    for (size_t kept = 0; kept <= records; ++kept) {
      SCOPED_TRACE(absl::StrCat("write ", n, ", of which ", kept, " records are kept"));
      Begin();
      unlink(journal_.c_str());
      came = false;
      int left = n;
      const bool opened = Restart([&](size_t size) -> std::optional<size_t> {
        if (--left != 0) return std::nullopt;
        came = true;
        records = size;
        return kept;
      });
      if (!opened || !Carry()) {
        ASSERT_TRUE(Restart());
        ASSERT_TRUE(Carry());
      }
      ASSERT_EQ(Results(), expected);
      EXPECT_GE(launcher_.starts, starts);
      ExpectOptunaHasAll();
      if (HasFailure() || !came) break;
    }
    ASSERT_FALSE(HasFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(, SearchCrash,
                         testing::Values(Script{"None", v1::SWEEP_SCHEDULE_NONE, 4, 1},
                                         Script{"NoneOfTwo", v1::SWEEP_SCHEDULE_NONE, 4, 2},
                                         Script{"Median", v1::SWEEP_SCHEDULE_MEDIAN, 6, 1},
                                         Script{"MedianOfTwo", v1::SWEEP_SCHEDULE_MEDIAN, 6, 2},
                                         Script{"Asha", v1::SWEEP_SCHEDULE_ASHA, 5, 1},
                                         Script{"AshaOfTwo", v1::SWEEP_SCHEDULE_ASHA, 5, 2},
                                         Script{"Hyperband", v1::SWEEP_SCHEDULE_HYPERBAND, 10, 1},
                                         Script{"HyperbandOfTwo", v1::SWEEP_SCHEDULE_HYPERBAND, 10, 2},
                                         Script{"Population", v1::SWEEP_SCHEDULE_POPULATION, 4, 1},
                                         Script{"PopulationOfTwo", v1::SWEEP_SCHEDULE_POPULATION, 4, 2}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace skein
