// SPDX-License-Identifier: Apache-2.0
// Rows 35 and 39: a learner that hangs in the run's folder, links in the folder, and a folder that is deleted.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "tests/faults/faulty_training.h"
#include "tests/integration/run_files.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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
  for (const char* name : {"lock", "checkpoints", "coordinator", "log", "log.jsonl", "metrics.jsonl"}) {
    const FaultyTraining training;
    const ScratchFolder elsewhere;
    elsewhere.Write("precious", "old");
    fs::create_directories(training.run());
    const bool is_file = fs::path(name).has_extension() || std::string(name) == "lock";
    fs::create_symlink(elsewhere.path() + (is_file ? "/precious" : ""), training.run() + "/" + name);
    const Ended ended = training.Train("");
    EXPECT_EQ(ended.code, 74) << ended.out;
    EXPECT_THAT(ended.out, HasSubstr(absl::StrCat(training.run(), "/", name, " is a symbolic link")));
    EXPECT_EQ(std::count(ended.out.begin(), ended.out.end(), '\n'), 1) << ended.out;
    EXPECT_EQ(elsewhere.Read("precious"), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(elsewhere.path()), {}), 1);
  }
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
