// SPDX-License-Identifier: Apache-2.0
#include "coordinator/state_log.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using Records = std::map<std::string, std::string>;

class StateLogTest : public testing::Test {
 protected:
  std::string folder() const { return scratch_.path() + "/state"; }
  std::string path() const { return folder() + "/log"; }
  std::unique_ptr<StateLog> Open(uint64_t compact_bytes = StateLog::kCompactBytes) const {
    auto log = StateLog::Open(folder(), compact_bytes);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }
  // What a successor finds.
  absl::StatusOr<Records> Reload() const { return Open()->Load(); }
  // Warnings, as a successor takes over.
  std::string SaidOnReload() const {
    std::ostringstream said;
    const auto logger = spdlog::default_logger();
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said)));
    EXPECT_TRUE(Reload().ok());
    spdlog::set_default_logger(logger);
    return said.str();
  }
  void Overwrite(const std::string& text) const { ASSERT_TRUE(WriteFileSynced(path(), text).ok()); }
  std::string Text() const { return ReadFile(path()).value_or(""); }

  // Three entries: a = 1; b = 2; a = 3, b removed.
  void WriteThree() const {
    const auto log = Open();
    EXPECT_TRUE(log->Load().ok());
    EXPECT_TRUE(log->Write({{"a", "1"}}).ok());
    EXPECT_TRUE(log->Write({{"b", "2", false}}).ok());
    EXPECT_TRUE(log->Write({{"a", "3"}, {"b", std::nullopt}}).ok());
  }

  const ScratchFolder scratch_;
};

TEST_F(StateLogTest, AnEmptyFolderHasNothing) {
  const auto records = Reload();
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_THAT(*records, IsEmpty());
}

TEST_F(StateLogTest, ASuccessorFindsWhatWasWritten) {
  WriteThree();
  EXPECT_THAT(*Reload(), UnorderedElementsAre(Pair("a", "3")));
  // It goes on where the one before ended.
  {
    const auto log = Open();
    EXPECT_TRUE(log->Load().ok());
    EXPECT_TRUE(log->Write({{"c", std::string("\0\xff", 2)}}).ok());
  }
  EXPECT_THAT(*Reload(), UnorderedElementsAre(Pair("a", "3"), Pair("c", std::string("\0\xff", 2))));
}

TEST_F(StateLogTest, OneAtATime) {
  const auto first = Open();
  const absl::Status status = StateLog::Open(folder()).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("another coordinator keeps its state in " + folder()));
}

TEST_F(StateLogTest, AFolderThatCannotBeMadeIsAnError) {
  scratch_.Write("file", "");
  EXPECT_FALSE(StateLog::Open(scratch_.path() + "/file/state").ok());
}

// A process that dies while it writes leaves a part of its last entry, wherever it ends.
TEST_F(StateLogTest, ATornTailIsDropped) {
  WriteThree();
  const std::string whole = Text();
  Overwrite("skein coordinator log 1\n");
  EXPECT_THAT(*Reload(), IsEmpty());
  size_t entries_seen = 0;
  for (size_t size = 24; size <= whole.size(); ++size) {  // 24: the first line.
    Overwrite(whole.substr(0, size));
    const auto records = Reload();
    ASSERT_TRUE(records.ok()) << size << records.status();
    const Records expected[] = {{}, {{"a", "1"}}, {{"a", "1"}, {"b", "2"}}, {{"a", "3"}}};
    while (entries_seen < 3 && *records != expected[entries_seen]) ++entries_seen;
    EXPECT_EQ(*records, expected[entries_seen]) << size;
    EXPECT_LE(Text().size(), size);
  }
  EXPECT_EQ(entries_seen, 3u);
}

TEST_F(StateLogTest, ATailOfZerosIsDropped) {
  WriteThree();
  Overwrite(Text() + std::string(4096, '\0'));
  EXPECT_THAT(*Reload(), UnorderedElementsAre(Pair("a", "3")));
}

TEST_F(StateLogTest, WhatIsDroppedIsSaid) {
  WriteThree();
  const std::string whole = Text();
  EXPECT_EQ(SaidOnReload(), "");
  Overwrite(whole + std::string(100, '\0'));
  EXPECT_THAT(SaidOnReload(),
              HasSubstr(absl::StrCat(path(), ": dropped its last 100 bytes, from byte ", whole.size(), " on: zeros")));
  Overwrite(whole + whole.substr(24, 5));
  EXPECT_THAT(SaidOnReload(), HasSubstr("dropped its last 5 bytes"));
  Overwrite(whole.substr(0, whole.size() - 1));
  EXPECT_THAT(SaidOnReload(), HasSubstr("an entry that should have "));
  std::string flipped = whole;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  Overwrite(flipped);
  EXPECT_THAT(SaidOnReload(), HasSubstr("the last entry, which is damaged"));
  EXPECT_EQ(SaidOnReload(), "");  // It is gone.
}

TEST_F(StateLogTest, AFlippedByteBeforeOtherEntriesIsDataLoss) {
  WriteThree();
  const std::string whole = Text();
  for (size_t at : {size_t{24}, size_t{28}, size_t{32}, size_t{37}}) {  // Size, its checksum, the bytes' one, a byte.
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    Overwrite(flipped);
    const absl::Status status = Reload().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << at << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path()));
  }
}

TEST_F(StateLogTest, AnotherFileIsDataLossAndCanBeSetAside) {
  std::filesystem::create_directories(folder());
  Overwrite("something else altogether");
  {
    const auto log = Open();
    EXPECT_TRUE(absl::IsDataLoss(log->Load().status()));
    EXPECT_EQ(*log->SetAside("damaged"), path() + ".damaged");
    EXPECT_TRUE(log->Write({{"a", "1"}}).ok());
  }
  EXPECT_THAT(*Reload(), UnorderedElementsAre(Pair("a", "1")));
  EXPECT_EQ(ReadFile(path() + ".damaged").value_or(""), "something else altogether");
}

TEST_F(StateLogTest, IsWrittenAnewOnceMostOfItIsOutOfDate) {
  const std::string value(100, 'x');
  {
    const auto log = Open(1000);
    EXPECT_TRUE(log->Load().ok());
    uint64_t most = 0;
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(log->Write({{"a", value + std::to_string(i), false}}).ok());
      most = std::max(most, log->log_bytes());
    }
    EXPECT_LT(most, 1200u);  // 1,000 and one entry.
  }
  EXPECT_THAT(*Reload(), UnorderedElementsAre(Pair("a", value + "99")));
}

// As when the disk is full for a while: what could not be written then is written with the next change.
TEST_F(StateLogTest, WhatCouldNotBeWrittenIsWrittenWithTheNextChange) {
  const auto log = Open();
  EXPECT_TRUE(log->Load().ok());
  EXPECT_TRUE(log->Write({{"a", "1"}}).ok());
  const std::string before = Text();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit usual;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  rlimit five_bytes_more = usual;
  five_bytes_more.rlim_cur = before.size() + 5;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &five_bytes_more), 0);
  EXPECT_FALSE(log->Write({{"b", "2"}}).ok());
  EXPECT_FALSE(log->Write({{"c", "3"}}).ok());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
  EXPECT_EQ(Text(), before);  // Not a part of an entry.
  EXPECT_TRUE(log->Write({{"d", "4"}}).ok());
  EXPECT_THAT(*log->Load(), UnorderedElementsAre(Pair("a", "1"), Pair("b", "2"), Pair("c", "3"), Pair("d", "4")));
}

}  // namespace
}  // namespace skein
