// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/log.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Log, TagsLinesOnStandardErrorWithTheProgram) {
  testing::internal::CaptureStderr();
  InitLog("skein-test");
  spdlog::info("joined as {}", "actor-1");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("[skein-test] joined as actor-1\n"));
  EXPECT_THAT(text, HasSubstr("info"));
}

TEST(Log, LinesOnATerminalCannotMoveItsCursor) {
  testing::internal::CaptureStderr();
  InitLog("skein-test");
  spdlog::warn("host \x1b[2Jnode\nskein: done");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("[skein-test] host \\x1b[2Jnode skein: done\n"));
}

TEST(Log, WritesOneJsonObjectALine) {
  const std::string path = testing::TempDir() + "/log_test." + std::to_string(getpid()) + ".jsonl";
  testing::internal::CaptureStderr();
  InitLog("skein-test", path);
  spdlog::info("quote \" newline \n end");
  spdlog::error(std::string("not UTF-8: \xff"));
  InitLog("skein-test");  // Lets go of the file.
  testing::internal::GetCapturedStderr();

  const std::string text = ReadFile(path).value();
  std::filesystem::remove(path);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u);
  const nlohmann::json first = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(first["level"], "info");
  EXPECT_EQ(first["program"], "skein-test");
  EXPECT_EQ(first["message"], "quote \" newline \n end");
  absl::Time time;
  std::string error;
  ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, first["time"].get<std::string>(), &time, &error)) << error;
  EXPECT_LT(absl::AbsDuration(absl::Now() - time), absl::Minutes(1));
  EXPECT_EQ(nlohmann::json::parse(lines[1])["level"], "error");
}

TEST(Log, FileThatCannotBeOpenedIsAWarning) {
  testing::internal::CaptureStderr();
  InitLog("skein-test", "/dev/null/log.jsonl");
  spdlog::info("goes on");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("/dev/null/log.jsonl"));
  EXPECT_THAT(text, HasSubstr("goes on"));
}

TEST(Log, FollowsNoLinkToItsFile) {
  const std::filesystem::path folder = testing::TempDir() + "/log_test." + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(WriteFileSynced(folder / "precious", "old\n").ok());
  std::filesystem::create_symlink(folder / "precious", folder / "log.jsonl");
  testing::internal::CaptureStderr();
  InitLog("skein-test", folder / "log.jsonl");
  spdlog::info("goes on");
  InitLog("skein-test");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("logging to standard error only: " + (folder / "log.jsonl").string() + " is a symbolic"));
  EXPECT_THAT(text, HasSubstr("goes on"));
  EXPECT_EQ(ReadFile(folder / "precious").value(), "old\n");
  std::filesystem::remove_all(folder);
}

TEST(Log, LevelComesFromTheEnvironment) {
  setenv("SKEIN_LOG", "error", 1);
  testing::internal::CaptureStderr();
  InitLog("skein-test");
  spdlog::info("quiet");
  spdlog::error("loud");
  setenv("SKEIN_LOG", "no such level", 1);
  InitLog("skein-test");
  spdlog::info("as without it");
  spdlog::debug("hidden");
  unsetenv("SKEIN_LOG");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, Not(HasSubstr("quiet")));
  EXPECT_THAT(text, HasSubstr("loud"));
  EXPECT_THAT(text, HasSubstr("as without it"));
  EXPECT_THAT(text, Not(HasSubstr("hidden")));
}

}  // namespace
}  // namespace skein
