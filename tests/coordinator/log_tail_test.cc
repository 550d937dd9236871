// SPDX-License-Identifier: Apache-2.0
#include "coordinator/log_tail.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/telemetry/log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr char kToken[] = "0123456789abcdef\"\\";

std::string Line(const std::string& message) {
  return json{{"time", "2026-01-31T12:00:00.000Z"}, {"level", "info"}, {"program", "skein-actor"}, {"message", message}}
             .dump() +
         "\n";
}

std::vector<std::string> Messages(const LogTail& tail) {
  const auto text = tail.Json();
  EXPECT_TRUE(text.ok()) << text.status();
  std::vector<std::string> messages;
  for (const json& line : json::parse(text.value_or("[]"))) messages.push_back(line["message"]);
  return messages;
}

TEST(LogTail, HasTheLastLinesInOrder) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += Line(std::to_string(i));
  const LogTail tail(folder.Write("log.jsonl", text), "");
  const std::vector<std::string> messages = Messages(tail);
  ASSERT_EQ(messages.size(), LogTail::kMostLines);
  EXPECT_EQ(messages.front(), "800");
  EXPECT_EQ(messages.back(), "999");
  // What is appended is there at the next look.
  std::ofstream(folder.path() + "/log.jsonl", std::ios::app) << Line("new");
  EXPECT_EQ(Messages(tail).back(), "new");
}

TEST(LogTail, ReadsOnlyTheEndOfALongFile) {
  const ScratchFolder folder;
  std::string text = Line(std::string(2 * LogTail::kMostFileBytes, 'x'));
  text += Line("end");
  EXPECT_THAT(Messages(LogTail(folder.Write("log.jsonl", text), "")), testing::ElementsAre("end"));
  // One line that is longer than what is read.
  EXPECT_THAT(Messages(LogTail(folder.Write("log.jsonl", std::string(2 * LogTail::kMostFileBytes, 'x')), "")),
              testing::IsEmpty());
}

TEST(LogTail, LeavesOutWhatIsNoLineOfALog) {
  const ScratchFolder folder;
  const std::string text = "not json\n\n[]\n{}\n{\"message\":\"alone\"}\n" + Line("good") +
                           R"({"time":1,"level":"info","program":"p","message":"m"})"
                           "\n" +
                           "{\"time\":\"torn";
  EXPECT_THAT(Messages(LogTail(folder.Write("log.jsonl", text), "")), testing::ElementsAre("good"));
}

TEST(LogTail, ControlCharactersAreSpacesAndLongLinesAreCut) {
  const ScratchFolder folder;
  const std::string text = Line("a\x1b[2Jb\nc\rd\u009be") + Line(std::string(5000, 'x'));
  const std::vector<std::string> messages = Messages(LogTail(folder.Write("log.jsonl", text), ""));
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0], "a [2Jb c d  e");
  EXPECT_EQ(messages[1], std::string(LogTail::kMostMessageBytes, 'x') + " ...");
}

TEST(LogTail, NeverShowsTheToken) {
  const ScratchFolder folder;
  json line = json::parse(Line(std::string("before ") + kToken + " after " + kToken));
  line["program"] = kToken;
  const LogTail tail(folder.Write("log.jsonl", line.dump() + "\n"), kToken);
  EXPECT_EQ(Messages(tail).back(), "before [token] after [token]");
  EXPECT_THAT(*tail.Json(), Not(HasSubstr("0123456789")));
}

TEST(LogTail, FollowsNoLinkAndReadsNothingButFiles) {
  const ScratchFolder folder;
  const std::string secret = folder.Write("secret", Line("hidden")), link = folder.path() + "/link";
  std::filesystem::create_symlink(secret, link);
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {link, pipe, folder.path(), folder.path() + "/missing", std::string("/dev/zero")}) {
    const auto text = LogTail(path, "").Json();
    EXPECT_TRUE(absl::IsUnavailable(text.status())) << path << ": " << text.status();
    EXPECT_THAT(std::string(text.status().message()), HasSubstr(path));
  }
}

TEST(LogTail, WithoutAFileHasTheLinesOfThisProcess) {
  const auto before = spdlog::default_logger();
  InitLog("skein-coordinator");
  const LogTail tail("", kToken);
  for (int i = 0; i < 300; ++i) spdlog::info("line {} with {}", i, kToken);
  const json lines = json::parse(*tail.Json());
  spdlog::set_default_logger(before);
  ASSERT_EQ(lines.size(), LogTail::kMostLines);
  EXPECT_EQ(lines.back()["message"], "line 299 with [token]");
  EXPECT_EQ(lines.back()["level"], "info");
  EXPECT_EQ(lines.back()["program"], "skein-coordinator");
  EXPECT_THAT(lines.back()["time"].get<std::string>(), testing::MatchesRegex("[0-9-]+T[0-9:.]+Z"));
}

}  // namespace
}  // namespace skein
