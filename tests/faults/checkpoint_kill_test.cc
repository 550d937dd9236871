// SPDX-License-Identifier: Apache-2.0
// Row 28: kill -9 while a checkpoint is written.
#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/faults/faulty_training.h"
#include "tests/integration/run_files.h"
#include "tests/testing/fault_choice.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t FolderBytes(const std::string& folder) {
  uint64_t bytes = 0;
  for (const std::string& name : Names(folder)) bytes += fs::file_size(folder + "/" + name);
  return bytes;
}

// Where a run that is killed and started again is.
class KilledTraining {
 public:
  // One more session, which is killed in the middle of a checkpoint.
  void Kill(const std::string& fault) {
    SCOPED_TRACE(fault);
    const std::string newest = NewestCheckpoint(training_.run());
    const std::string log = training_.Log("learner");
    const Ended ended = training_.Train(fault);
    EXPECT_EQ(ended.code, 128 + 9) << ended.out;
    ExpectResumedFrom(newest, training_.Log("learner").substr(log.size()));
    // Whatever has a checkpoint's name is one: folders get it when they are complete.
    for (const std::string& name : Names(training_.checkpoints())) {
      if (!absl::StartsWith(name, "step_")) continue;
      EXPECT_EQ(Names(training_.checkpoints() + "/" + name).size(), 5u) << name;
    }
    leftovers_ += Leftovers();
  }

  // To the target without a fault.
  void Finish() {
    const std::string newest = NewestCheckpoint(training_.run());
    const std::string log = training_.Log("learner");
    const Ended ended = training_.Train("");
    EXPECT_EQ(ended.code, 0) << ended.out;
    ExpectResumedFrom(newest, training_.Log("learner").substr(log.size()));
    EXPECT_EQ(Leftovers(), 0);
    EXPECT_EQ(training_.FinishedDigest(), FaultyTraining::Undisturbed());
  }

  int leftovers() const { return leftovers_; }

 private:
  static void ExpectResumedFrom(const std::string& newest, const std::string& log) {
    const std::string from = FirstMatch(log, "resumed from (\\S+) at");
    EXPECT_EQ(fs::path(from).filename(), fs::path(newest).filename()) << log;
    EXPECT_EQ(Count(log, "skipped"), 0) << log;
  }
  int Leftovers() const {
    const std::vector<std::string> names = Names(training_.checkpoints());
    return static_cast<int>(std::count_if(names.begin(), names.end(),
                                          [](const std::string& name) { return absl::StartsWith(name, ".tmp"); }));
  }

  FaultyTraining training_;
  int leftovers_ = 0;
};

TEST(FaultRow28, KilledAtTwentyPointsTheRunEndsLikeAQuietOne) {
  // As large as one checkpoint of this run.
  const FaultyTraining quiet({}, 1);
  ASSERT_EQ(quiet.Train("").code, 0);
  const uint64_t bytes = FolderBytes(NewestCheckpoint(quiet.run()));
  ASSERT_GT(bytes, 10000u);

  KilledTraining training;
  std::mt19937 random = FaultRandom(28);
  // A session gets on by one checkpoint or none. The first byte, the last one, and others in the first or second
  // checkpoint of a session.
  training.Kill("checkpoint:kill@bytes=0");
  training.Kill(absl::StrCat("checkpoint:kill@bytes=", bytes - 1));
  for (int i = 0; i < 12; ++i) {
    const std::string fault = absl::StrCat("checkpoint:kill@bytes=", Choose(&random, 0, 2 * bytes - 3));
    SayChoice(fault);
    training.Kill(fault);
  }
  for (const char* point : {"folder", "files", "done", "renamed", "linked", "pruned"}) {
    training.Kill(absl::StrCat("checkpoint:kill@point=", point));
  }
  EXPECT_GE(training.leftovers(), 14);  // Each time there was one; those of before are gone.
  training.Finish();
}

}  // namespace
}  // namespace skein
