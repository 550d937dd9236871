// SPDX-License-Identifier: Apache-2.0
#include "base/process/json_line_process.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::unique_ptr<JsonLineProcess> Start(const std::string& script, const JsonLineProcess::Options& options = {}) {
  auto process = JsonLineProcess::Start({"sh", "-c", script}, options);
  EXPECT_TRUE(process.ok()) << process.status();
  return *std::move(process);
}

TEST(JsonLineProcess, AnswersEachLineWithOne) {
  const auto process = Start("while read -r line; do echo \"{\\\"got\\\": $line}\"; done");
  for (int i = 0; i < 3; ++i) {
    const auto answer = process->Ask({{"number", i}}, absl::Seconds(20));
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ((*answer)["got"]["number"], i);
  }
}

TEST(JsonLineProcess, HasTheEnvironmentThatItIsGiven) {
  setenv("JSON_LINE_SECRET", "secret", 1);
  const auto process = Start("read -r line; echo \"{\\\"own\\\": \\\"$JSON_LINE_OWN$JSON_LINE_SECRET\\\"}\"",
                             {.log_path = "", .extra_env = {"JSON_LINE_OWN=mine"}, .unset_env = {"JSON_LINE_SECRET"}});
  const auto answer = process->Ask(json::object(), absl::Seconds(20));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["own"], "mine");
}

TEST(JsonLineProcess, SaysHowItEnded) {
  const auto left = Start("read -r line; exit 3")->Ask(json::object(), absl::Seconds(20)).status();
  EXPECT_EQ(left.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(left.message()), HasSubstr("sh has ended, with exit code 3"));
  const auto killed = Start("read -r line; kill -9 $$")->Ask(json::object(), absl::Seconds(20)).status();
  EXPECT_THAT(std::string(killed.message()), HasSubstr("by signal 9"));
}

TEST(JsonLineProcess, IsNotWaitedForForEver) {
  const auto late = Start("sleep 100")->Ask(json::object(), absl::Milliseconds(50)).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()), HasSubstr("sh has not answered for 50ms"));
  int asked = 0;
  const auto given_up =
      Start("sleep 100")->Ask(json::object(), absl::Seconds(60), [&] { return ++asked == 2; }).status();
  EXPECT_EQ(given_up.code(), absl::StatusCode::kCancelled);
}

TEST(JsonLineProcess, AnswersWithAnObjectOnly) {
  for (const char* const answer : {"[1]", "nonsense", "1"}) {
    const auto status =
        Start(std::string("read -r line; echo '") + answer + "'")->Ask(json::object(), absl::Seconds(20)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << answer;
  }
}

TEST(JsonLineProcess, EndsByItselfWhenItsInputDoes) {
  const auto process = Start("while read -r line; do echo '{}'; done; exit 0");
  ASSERT_TRUE(process->Ask(json::object(), absl::Seconds(20)).ok());
  process->Finish(absl::Seconds(20));
}

TEST(JsonLineProcess, ThatIsNotThereIsNotFound) {
  EXPECT_EQ(JsonLineProcess::Start({"no-such-program-at-all"}, {}).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace skein
