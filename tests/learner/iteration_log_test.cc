// SPDX-License-Identifier: Apache-2.0
#include "learner/report/iteration_log.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string Line(uint64_t iteration, const std::string& mark = "") {
  return absl::StrCat(R"({"actors":{"wait":0.5},"iteration":)", iteration, R"(,"mark":")", mark, R"("})");
}

std::string Lines(uint64_t first, uint64_t last) {
  std::string text;
  for (uint64_t i = first; i <= last; ++i) absl::StrAppend(&text, Line(i), "\n");
  return text;
}

class IterationLogTest : public testing::Test {
 protected:
  IterationLogTest() : folder_(fs::path(testing::TempDir()) / absl::StrCat("iteration_log_test.", getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~IterationLogTest() override { fs::remove_all(folder_); }

  std::string path() const { return folder_ / "metrics.jsonl"; }
  std::string Text() const { return ReadFile(path()).value_or("none"); }
  void Write(const std::string& text) const { EXPECT_TRUE(WriteFileSynced(path(), text).ok()); }
  std::unique_ptr<IterationLog> Open() const {
    auto log = IterationLog::Open(path());
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }

  const fs::path folder_;
};

TEST_F(IterationLogTest, HasALineForEachIteration) {
  const auto log = Open();
  EXPECT_EQ(*log->KeepUpTo(0), 0u);
  for (uint64_t i : {1, 2, 3}) EXPECT_TRUE(log->Append(Line(i)).ok());
  EXPECT_EQ(Text(), Lines(1, 3));
  EXPECT_TRUE(log->Sync().ok());
}

// A run of five iterations with a checkpoint after the third is cut off at each byte, as a crash may leave the file.
TEST_F(IterationLogTest, CutOffAnywhereItHasEachIterationOnceAfterTheRunContinued) {
  const std::string whole = Lines(1, 5);
  const size_t least = Lines(1, 3).size();  // They were synced before the checkpoint.
  for (size_t size = least; size <= whole.size(); ++size) {
    Write(whole.substr(0, size));
    const auto log = Open();
    ASSERT_EQ(*log->KeepUpTo(3), 3u) << size;
    for (uint64_t i : {4, 5, 6}) ASSERT_TRUE(log->Append(Line(i)).ok());
    ASSERT_EQ(Text(), Lines(1, 6)) << size;
  }
}

TEST_F(IterationLogTest, MendsAFileOfEarlierCrashes) {
  // Iterations 2 and 3 were trained twice, and a torn line is joined to the next one.
  const std::string torn = Line(4).substr(0, 20);
  Write(Lines(1, 3) + Line(2, "again") + "\n" + Line(3, "again") + "\n" + torn + Line(4) + "\n" + Lines(5, 5) + torn);
  const auto log = Open();
  EXPECT_EQ(*log->KeepUpTo(9), 5u);
  EXPECT_EQ(Text(), Line(1) + "\n" + Line(2, "again") + "\n" + Line(3, "again") + "\n" + Line(5) + "\n");
  EXPECT_TRUE(log->Append(Line(6)).ok());  // Into the file that is there now.
  EXPECT_THAT(Text(), testing::EndsWith(Line(5) + "\n" + Line(6) + "\n"));
}

TEST_F(IterationLogTest, LinesThatTheDiskDidNotTakeAreWrittenLater) {
  const auto log = Open();
  ASSERT_TRUE(log->Append(Line(1)).ok());
  // Files may not grow beyond the middle of the next line, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit full = before;
  full.rlim_cur = Line(1).size() * 3 / 2;
  setrlimit(RLIMIT_FSIZE, &full);
  EXPECT_FALSE(log->Append(Line(2)).ok());
  EXPECT_FALSE(log->Append(Line(3)).ok());
  EXPECT_FALSE(log->Sync().ok());
  EXPECT_EQ(Text(), Lines(1, 1));  // No torn line.
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(log->Append(Line(4)).ok());
  EXPECT_EQ(Text(), Lines(1, 4));
}

// The ranks meet again at the checkpoint of iteration 1, and train iteration 2 once more.
TEST_F(IterationLogTest, LinesThatTheDiskDidNotTakeAreDroppedWhereTheyAreTrainedAgain) {
  const auto log = Open();
  ASSERT_TRUE(log->Append(Line(1)).ok());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit full = before;
  full.rlim_cur = Lines(1, 1).size();
  setrlimit(RLIMIT_FSIZE, &full);
  EXPECT_FALSE(log->Append(Line(2, "first")).ok());
  EXPECT_EQ(*log->KeepUpTo(1), 1u);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(log->Append(Line(2)).ok());
  EXPECT_EQ(Text(), Lines(1, 2));
}

TEST_F(IterationLogTest, NothingButARegularFileIsWritten) {
  fs::create_symlink(folder_ / "elsewhere", path());
  EXPECT_TRUE(absl::IsPermissionDenied(IterationLog::Open(path()).status()));
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere"));
  fs::remove(path());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  const absl::Status pipe = IterationLog::Open(path()).status();  // Does not wait for a reader.
  EXPECT_TRUE(absl::IsPermissionDenied(pipe));
  EXPECT_THAT(pipe.message(), HasSubstr("is no regular file"));
}

}  // namespace
}  // namespace skein
