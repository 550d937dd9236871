// SPDX-License-Identifier: Apache-2.0
// Rows 35 and 39: a learner that hangs in the run's folder, links in the folder, and a folder that is deleted.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "tests/faults/faulty_training.h"
#include "tests/integration/run_files.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

// A symbolic link in a run's folder, to a folder that has one file, or to that file.
class LinkedFile {
 public:
  explicit LinkedFile(const std::string& path) : path_(path) {
    elsewhere_.Write("precious", "old");
    fs::create_directories(fs::path(path).parent_path());
    const std::string name = fs::path(path).filename();
    const bool is_folder = name == "checkpoints" || name == "coordinator" || absl::EndsWith(path, "/run/log");
    fs::create_symlink(elsewhere_.path() + (is_folder ? "" : "/precious"), path);
  }
  // The run has ended with a message about it, and nothing was written there.
  void ExpectNamed(const Ended& ended) const {
    EXPECT_EQ(ended.code, 74) << ended.out;
    EXPECT_THAT(ended.out, HasSubstr(path_ + " is a symbolic link"));
    EXPECT_TRUE(fs::is_symlink(path_));
    EXPECT_EQ(elsewhere_.Read("precious"), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(elsewhere_.path()), {}), 1);
  }

 private:
  const std::string path_;
  const ScratchFolder elsewhere_;
};

TEST(FaultRow35, ALearnerThatHangsIsNotStartingOrTraining) {
  const FaultyTraining training({"coordinator.lease_seconds=0.5", "coordinator.heartbeat_seconds=0.1"});
  const std::string hung = training.folder() + "/hung";
  const auto skein = training.Start("", {},
                                    {std::string("LD_PRELOAD=") + HANGING_OPEN,
                                     "SKEIN_HANGING_OPEN=optimizer.safetensors", "SKEIN_HANGING_MARKER=" + hung});
  ASSERT_TRUE(WaitUntil([&] { return access(hung.c_str(), F_OK) == 0; }, absl::Minutes(1)));
  const std::string said = skein->WaitForOutput("(blocked .*first error: .*)\n");
  EXPECT_THAT(said, HasSubstr("learner-0 on "));
  EXPECT_THAT(said, HasSubstr("sends heartbeats and has done nothing for "));
}

TEST(FaultRow39, LinksInTheFolderAreNamedAndNotFollowed) {
  for (const char* name : {"lock", "checkpoints", "config.yaml", "coordinator", "coordinator/lock", "coordinator/log",
                           "eval.json", "log", "log.jsonl", "metrics.jsonl"}) {
    const FaultyTraining training;
    const LinkedFile link(training.run() + "/" + name);
    const Ended ended = training.Train("");
    link.ExpectNamed(ended);
    EXPECT_EQ(std::count(ended.out.begin(), ended.out.end(), '\n'), 1) << ended.out;
  }
}

// These are opened when their process starts.
TEST(FaultRow39, LinksThatAreLogsOfProcessesAreNamedAndNotFollowed) {
  for (const char* name : {"log/coordinator.log", "log/learner.log", "log/actor-1.log", "log/eval.log"}) {
    const FaultyTraining training({}, /*iterations=*/2, /*evaluates=*/true);
    const LinkedFile link(training.run() + "/" + name);
    link.ExpectNamed(training.Train(""));
  }
}

// Whatever else a run writes in its folder is in none of these lists, and is to be added to one.
TEST(FaultRow39, ARunWritesNothingElseInItsFolder) {
  const FaultyTraining training({}, /*iterations=*/2, /*evaluates=*/true);
  const Ended ended = training.Train("");
  ASSERT_EQ(ended.code, 0) << ended.out;
  std::set<std::string> names;
  for (const char* folder : {"", "/coordinator", "/log"}) {
    for (const auto& entry : fs::directory_iterator(training.run() + folder)) {
      const std::string name = fs::relative(entry.path(), training.run());
      // TensorBoard's files have the time and a process's number in their names.
      if (!absl::StartsWith(name, "events.out.tfevents.")) names.insert(name);
    }
  }
  EXPECT_THAT(names, UnorderedElementsAre("lock", "checkpoints", "config.yaml", "coordinator", "coordinator/lock",
                                          "coordinator/log", "eval.json", "log", "log.jsonl", "metrics.jsonl",
                                          "log/coordinator.log", "log/learner.log", "log/actor-1.log", "log/eval.log"));
}

TEST(FaultRow39, AFolderThatIsDeletedEndsTheRun) {
  const FaultyTraining training({}, 100'000);
  const auto skein = training.Start("");
  ASSERT_TRUE(WaitUntil([&] { return !NewestCheckpoint(training.run()).empty(); }, absl::Minutes(1)));
  // A process may be making files meanwhile.
  EXPECT_TRUE(WaitUntil([&] {
    std::error_code error;
    fs::remove_all(training.run(), error);
    return skein->ended();
  }));
  EXPECT_EQ(skein->WaitForEnd(), 74);
  EXPECT_THAT(skein->Output(), HasSubstr("the run folder, or its lock, was deleted or replaced"));
}

}  // namespace
}  // namespace skein
