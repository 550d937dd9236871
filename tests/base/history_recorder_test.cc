// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/history_recorder.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

// Each test is a process of its own here: the variable is read once.
void RecordInto(const std::string& folder) {
  setenv("SKEIN_HISTORY", folder.c_str(), 1);
  if (HistoryIsOn()) {
    RecordHistory("batch", {{"actor", "actor-1"}, {"sequence", uint64_t{7}}});
    RecordHistory("end", {{"why", "\xff"}});  // Not UTF-8.
  }
}

TEST(HistoryRecorderDeathTest, WritesALineForEachEvent) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const std::string folder = testing::TempDir() + "/skein_history_recorder_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  EXPECT_EXIT(
      {
        RecordInto(folder);
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++files;
    const auto text = ReadFile(entry.path());
    ASSERT_TRUE(text.ok());
    const size_t end = text->find('\n');
    const auto first = nlohmann::json::parse(text->substr(0, end));
    EXPECT_EQ(first.at("event"), "batch");
    EXPECT_EQ(first.at("actor"), "actor-1");
    EXPECT_EQ(first.at("sequence"), 7);
    EXPECT_GT(first.at("t").get<double>(), 0);
    EXPECT_EQ(absl::StrCat(first.at("pid").get<int>(), ".jsonl"), entry.path().filename());
    EXPECT_EQ(nlohmann::json::parse(text->substr(end + 1)).at("event"), "end");
  }
  EXPECT_EQ(files, 1);
  std::filesystem::remove_all(folder);
}

TEST(HistoryRecorderDeathTest, IsOffWithoutAFolderAndWhereItCannotWrite) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const char* folder : {"", "/nonexistent/folder"}) {
    EXPECT_EXIT(
        {
          setenv("SKEIN_HISTORY", folder, 1);
          RecordHistory("batch", {});
          _exit(HistoryIsOn() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace skein
