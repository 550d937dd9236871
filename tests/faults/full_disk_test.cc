// SPDX-License-Identifier: Apache-2.0
// Row 30: the disk is full, read-only or broken while checkpoints are written.
#include <sys/mount.h>

#include <csignal>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/faults/faulty_training.h"
#include "tests/integration/cluster.h"
#include "tests/integration/run_files.h"
#include "tests/testing/scrape.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A checkpoint after each iteration of 1024 steps.
const std::vector<std::string>& Settings() {
  static const std::vector<std::string> settings = {"total_steps=1000000000", "checkpoint.interval_steps=1024",
                                                    "checkpoint.keep=1000000"};
  return settings;
}

struct Written {
  double good = 0, failed = 0;
};
Written Scraped(const Running& learner) {
  const int port = std::stoi(FirstMatch(learner.Output(), "metrics=\\S+:(\\d+)"));
  return {Scrape(port, "skein_learner_checkpoints_total"), Scrape(port, "skein_learner_checkpoint_failures_total")};
}

bool HasLeftovers(const std::string& checkpoints) {
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    if (absl::StartsWith(entry.path().filename().string(), ".tmp")) return true;
  }
  return false;
}

// The disk refuses three writes after the first two checkpoints, of five files each.
void ExpectRetried(const std::string& kind, const std::string& message) {
  Cluster cluster(Settings());
  cluster.StartCoordinator();
  cluster.StartLearner({absl::StrCat("SKEIN_FAULTS=disk:", kind, "@after=10,times=3")});
  const auto actor = cluster.StartActor();
  EXPECT_TRUE(cluster.WaitForStatus([&](const v1::StatusResponse&) { return Scraped(cluster.learner()).good >= 4; }));
  EXPECT_EQ(Scraped(cluster.learner()).failed, 3);
  const std::string output = cluster.learner().Output();
  EXPECT_EQ(Count(output, "checkpoint not written: "), 3);
  // After iterations 3, 4 and 5; training went on.
  EXPECT_THAT(output, HasSubstr("cannot write " + cluster.run_folder() + "/checkpoints/.tmp-step_000000003072"));
  EXPECT_THAT(output, HasSubstr(message));
  EXPECT_THAT(output, HasSubstr("checkpoints/step_000000006144 digest"));
  cluster.learner().Signal(SIGTERM);
  EXPECT_EQ(cluster.learner().WaitForEnd(), 0);
  const std::string checkpoints = cluster.run_folder() + "/checkpoints";
  EXPECT_FALSE(HasLeftovers(checkpoints));
  EXPECT_TRUE(Balances(Account(cluster.run_folder())));

  // The one from before the failures is whole: a run goes on from it where there is no other.
  const std::string old = checkpoints + "/step_000000002048";
  for (const auto& entry : fs::directory_iterator(checkpoints)) {
    if (entry.path() != old) fs::remove_all(entry.path());
  }
  cluster.StartLearner({}, {"--resume", "must"});
  EXPECT_EQ(cluster.learner().WaitForOutput("resumed from (\\S+) at 2048 "), old);
}

TEST(FaultRow30, AnErrorOfTheDisk) { ExpectRetried("eio", "Input/output error"); }
TEST(FaultRow30, ADiskThatIsFull) { ExpectRetried("enospc", "No space left on device"); }
TEST(FaultRow30, ADiskThatCannotBeWrittenTo) { ExpectRetried("erofs", "Read-only file system"); }

// A file system of memory, of a size of its own; gone with it.
class SmallDisk {
 public:
  SmallDisk(const std::string& folder, const std::string& size) : folder_(folder) {
    fs::create_directories(folder_);
    mounted_ = mount("tmpfs", folder_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  bool Change(const std::string& size, bool read_only) {
    return mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT | (read_only ? MS_RDONLY : 0),
                 ("size=" + size).c_str()) == 0;
  }

 private:
  const std::string folder_;
  bool mounted_ = false;
};

TEST(FaultRow30, ARealDiskFillsUpIsReadOnlyAndGetsRoomAgain) {
  Cluster cluster(Settings());
  const std::string checkpoints = cluster.run_folder() + "/checkpoints";
  SmallDisk disk(checkpoints, "64k");  // Less than one checkpoint.
  if (!disk.mounted()) GTEST_SKIP() << "file systems cannot be mounted here";
  cluster.StartCoordinator();
  cluster.StartLearner();
  const auto actor = cluster.StartActor();
  const auto wait_for = [&](const std::function<bool(const Written&)>& condition) {
    return cluster.WaitForStatus([&](const v1::StatusResponse&) { return condition(Scraped(cluster.learner())); });
  };
  ASSERT_TRUE(wait_for([](const Written& written) { return written.failed >= 2; }));
  EXPECT_EQ(Scraped(cluster.learner()).good, 0);
  EXPECT_THAT(cluster.learner().Output(), HasSubstr("No space left on device"));

  ASSERT_TRUE(disk.Change("16m", false));
  ASSERT_TRUE(wait_for([](const Written& written) { return written.good >= 3; }));

  ASSERT_TRUE(disk.Change("16m", true));
  const Written before = Scraped(cluster.learner());
  ASSERT_TRUE(wait_for([&](const Written& written) { return written.failed >= before.failed + 2; }));
  EXPECT_THAT(cluster.learner().Output(), HasSubstr("Read-only file system"));
  const std::string newest = NewestCheckpoint(cluster.run_folder());

  ASSERT_TRUE(disk.Change("16m", false));
  const Written after = Scraped(cluster.learner());
  EXPECT_FALSE(newest.empty());
  ASSERT_TRUE(wait_for([&](const Written& written) { return written.good >= after.good + 1; }));
  EXPECT_GT(NewestCheckpoint(cluster.run_folder()), newest);
  cluster.learner().Signal(SIGTERM);
  EXPECT_EQ(cluster.learner().WaitForEnd(), 0);
  EXPECT_EQ(actor->WaitForEnd(), 0);
}

}  // namespace
}  // namespace skein
