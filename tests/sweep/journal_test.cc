// SPDX-License-Identifier: Apache-2.0
#include "sweep/journal.h"

#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "sweep/sweep_record.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;

nlohmann::json Record(int operation) { return nlohmann::json::object({{"op_code", operation}}); }

TEST(Journal, HasOneWriter) {
  const ScratchFolder folder;
  const auto journal = Journal::Open(folder.path() + "/journal.log");
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_TRUE(absl::IsUnavailable(Journal::Open(folder.path() + "/journal.log").status()));
}

TEST(Journal, GivesWhatOthersHaveAddedInTheFilesOrder) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/journal.log";
  auto journal = Journal::Open(path);
  ASSERT_TRUE(journal.ok()) << journal.status();
  std::ofstream(path, std::ios::app) << R"({"op_code":4,"worker_id":"other"})"
                                     << "\n";
  const auto added = (*journal)->Append({Record(1), Record(2)});
  ASSERT_TRUE(added.ok()) << added.status();
  ASSERT_EQ(added->size(), 3u);
  EXPECT_EQ((*added)[0]["worker_id"], "other");
  EXPECT_EQ((*added)[2], Record(2));
  std::ofstream(path, std::ios::app) << "nonsense\n";
  EXPECT_THAT(std::string((*journal)->Append({Record(3)}).status().message()), HasSubstr("journal.log:4: no record"));
}

class SweepRecordTest : public testing::Test {
 protected:
  SweepRecordTest() {
    Parameter x;
    x.path = "ppo.lr";
    x.kind = Parameter::Kind::kReal;
    x.high = 1;
    file_.space.parameters = {x};
    file_.config.set_name("s");
    file_.config.set_goal(v1::SWEEP_GOAL_MAXIMIZE);
  }
  absl::StatusOr<std::unique_ptr<SweepRecord>> Open(const std::string& identity = "one") const {
    return SweepRecord::Open(path_, file_, identity);
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_.path() + "/journal.log";
  SweepFile file_;
};

TEST_F(SweepRecordTest, NamesTheLineOfAnotherSpace) {
  ASSERT_TRUE(Open("x: 1\ny: 2").ok());
  const auto other = [&](const std::string& identity) {
    const auto opened = Open(identity);
    EXPECT_TRUE(absl::IsFailedPrecondition(opened.status()));
    return std::string(opened.status().message());
  };
  // The two studies come first.
  EXPECT_THAT(other("x: 1\ny: 3"),
              HasSubstr("journal.log:3: the journal of another sweep: it has y: 2, this sweep y: 3; give another"));
  // What has no counterpart is not compared with something else.
  EXPECT_THAT(other("y: 2"), HasSubstr("it has x: 1, this sweep has not"));
  EXPECT_THAT(other("x: 1\nz: 4\ny: 2"), HasSubstr("this sweep has z: 4, it has not"));
  EXPECT_THAT(other("y: 2\nx: 1"), HasSubstr("another order"));
}

TEST_F(SweepRecordTest, GoesOnFromAnyOfItsFirstLines) {
  ASSERT_TRUE(Open().ok());
  const std::vector<std::string> lines = absl::StrSplit(folder_.Read("journal.log"), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u);
  for (size_t kept = 0; kept <= lines.size(); ++kept) {
    std::string text;
    for (size_t i = 0; i < kept; ++i) text += lines[i] + "\n";
    folder_.Write("journal.log", text);
    auto record = Open();
    ASSERT_TRUE(record.ok()) << record.status();
    ASSERT_TRUE((*record)->Write({(*record)->search().CreateTrial({0.5}, 0, 0, nullptr)}).ok());
    EXPECT_EQ((*record)->search().trials().size(), 1u);
    *record = nullptr;
    EXPECT_EQ((*Open())->search().trials().size(), 1u);
    EXPECT_EQ((*Open())->test().trials().size(), 0u);
  }
}

TEST_F(SweepRecordTest, LeavesJournalsOfOthersAlone) {
  const std::string text = R"({"op_code":0,"worker_id":"a","study_name":"b","directions":[1]})"
                           "\n";
  folder_.Write("journal.log", text);
  EXPECT_TRUE(absl::IsFailedPrecondition(Open().status()));
  EXPECT_EQ(folder_.Read("journal.log"), text);
}

// As optuna's enqueue_trial and set_user_attr write them.
TEST_F(SweepRecordTest, TrialsOfOthersShiftNoResult) {
  auto record = Open();
  ASSERT_TRUE(record.ok()) << record.status();
  const Study& study = (*record)->search();
  const auto create = [&](double x) { ASSERT_TRUE((*record)->Write({study.CreateTrial({x}, 0, 0, nullptr)}).ok()); };
  create(0.25);
  std::ofstream(path_, std::ios::app)
      << R"({"op_code":4,"worker_id":"a","study_id":0,"datetime_start":null,"state":4,"user_attrs":{}})"
      << "\n"
      << R"({"op_code":0,"worker_id":"a","study_name":"b","directions":[1]})"
      << "\n"
      << R"({"op_code":4,"worker_id":"a","study_id":2,"datetime_start":null})"
      << "\n"
      << R"({"op_code":8,"worker_id":"a","trial_id":0,"user_attr":{"rung 0":[9]}})"
      << "\n";
  create(0.75);
  ASSERT_TRUE((*record)->Write(study.Report(1, 0, 100, {7}, true)).ok());
  for (int round = 0; round < 2; ++round) {
    const std::vector<Trial>& trials = (*record)->search().trials();
    ASSERT_EQ(trials.size(), 2u);
    EXPECT_TRUE(trials[0].results.empty());
    EXPECT_EQ(*trials[1].point[0], 0.75);
    EXPECT_EQ(trials[1].results.at(0), 7);
    EXPECT_EQ(trials[1].state, TrialState::kComplete);
    *record = nullptr;
    record = Open();
    ASSERT_TRUE(record.ok()) << record.status();
  }
  // Optuna counts the other two: ids 1 and 2.
  EXPECT_THAT(folder_.Read("journal.log"),
              HasSubstr(R"("intermediate_value":7.0,"op_code":7,"step":100,"trial_id":3)"));
}

TEST_F(SweepRecordTest, ARungWithoutAValueIsTheWorst) {
  auto record = Open();
  ASSERT_TRUE(record.ok()) << record.status();
  const Study& study = (*record)->search();
  ASSERT_TRUE((*record)->Write({study.CreateTrial({0.5}, 0, 0, nullptr)}).ok());
  ASSERT_TRUE((*record)->Write(study.Report(0, 0, 100, {1, std::nan("")}, false)).ok());
  for (int round = 0; round < 2; ++round) {
    const Trial& trial = (*record)->search().trial(0);
    EXPECT_EQ(trial.state, TrialState::kRunning);
    EXPECT_EQ(trial.results.at(0), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(trial.values[0], 1);
    EXPECT_TRUE(std::isnan(trial.values[1]));
    *record = nullptr;
    record = Open();
    ASSERT_TRUE(record.ok()) << record.status();
  }
  EXPECT_THAT(folder_.Read("journal.log"), testing::Not(HasSubstr("intermediate_value\"")));
}

TEST(Journal, CutsATornLineAndNamesABadOne) {
  const ScratchFolder folder;
  const std::string path = folder.Write("journal.log", "{\"op_code\":0}\n{\"op_co");
  {
    auto journal = Journal::Open(path);
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_EQ((*journal)->TakeRecords().size(), 1u);
    EXPECT_TRUE((*journal)->Append({Record(1)}).ok());
  }
  EXPECT_EQ(folder.Read("journal.log"), "{\"op_code\":0}\n{\"op_code\":1}\n");
  folder.Write("journal.log", "{\"op_code\":0}\nnonsense\n");
  EXPECT_THAT(std::string(Journal::Open(path).status().message()), HasSubstr("journal.log:2: no record"));
}

TEST(Journal, AFullDiskLeavesItAsItWas) {
  const ScratchFolder folder;
  auto journal = Journal::Open(folder.path() + "/journal.log");
  ASSERT_TRUE(journal.ok()) << journal.status();
  ASSERT_TRUE((*journal)->Append({Record(1)}).ok());
  // Room for a part of the next record: files may have 20 bytes, as if the disk ended there.
  signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = (*journal)->Append({Record(2)}).status();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(folder.Read("journal.log"), "{\"op_code\":1}\n");
  EXPECT_TRUE((*journal)->Append({Record(3)}).ok());
  EXPECT_EQ(folder.Read("journal.log"), "{\"op_code\":1}\n{\"op_code\":3}\n");
}

}  // namespace
}  // namespace skein
