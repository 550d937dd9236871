// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_display.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_split.h"
#include "base/process/terminal.h"
#include "gmock/gmock.h"
#include "tests/testing/written.h"

namespace skein {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

TEST(ProgressDisplay, WithoutATerminalWritesALineEveryFiveSeconds) {
  const std::string text = Written([](std::FILE* out) {
    ProgressDisplay display(out, 0);
    for (int second = 0; second <= 11; ++second) display.Update({}, {}, absl::Seconds(second));
    display.Update({}, {}, absl::Seconds(12), true);
  });
  // At 0, 5 and 10 s, and the last at 12 s; the last newline leaves an empty piece.
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(text, '\n')).size(), 5u);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(ProgressDisplay, WithoutATerminalKeepsToTheIntervalThatItIsGiven) {
  const std::string text = Written([](std::FILE* out) {
    ProgressDisplay display(out, 0, absl::Seconds(10));
    for (int second = 0; second <= 21; ++second) display.Update({}, {}, absl::Seconds(second));
  });
  // At 0, 10 and 20 s.
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(text, '\n')).size(), 4u);
}

TEST(ProgressDisplay, SaysEachWarningOnce) {
  v1::StatusResponse status;
  const std::string text = Written([&](std::FILE* out) {
    ProgressDisplay display(out, 0);
    display.Update(status, {}, absl::Seconds(0));
    for (const char* warning : {"it is hot", "it is \x1b wet"}) {
      status.mutable_progress()->add_warnings(warning);
      for (int second = 1; second <= 3; ++second) display.Update(status, {}, absl::Seconds(second));
    }
    display.Update(status, {}, absl::Seconds(4), true);
  });
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(text, "warning: it is hot\n")).size(), 2u);
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(text, "warning: it is ")).size(), 3u);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(ProgressDisplay, OnATerminalRedrawsItsFiveLinesInPlace) {
  const std::string text = Written([](std::FILE* out) {
    ProgressDisplay display(out, 80);
    display.Update({}, {}, absl::Seconds(0));
    display.Update({}, {}, absl::Seconds(1));
  });
  const size_t first = text.find("\x1b[5A\x1b[J");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.substr(0, first), text.substr(first + 7));  // The same block again after 7 control characters.
}

TEST(ProgressDisplay, SaysLinesAboveTheBlock) {
  const std::string text = Written([](std::FILE* out) {
    ProgressDisplay display(out, 80);
    display.Update({}, {}, absl::Seconds(0));
    display.Say("actor-1 died");
  });
  const size_t block_size = text.find("\x1b[5A\x1b[J");
  EXPECT_EQ(text.substr(block_size + 7), "actor-1 died\n" + text.substr(0, block_size));
}

TEST(ProgressDisplay, LeavesAFinishedBlockAlone) {
  const std::string text = Written([](std::FILE* out) {
    ProgressDisplay display(out, 80);
    display.Update({}, {}, absl::Seconds(0));
    display.Finish();
    display.Say("done");
  });
  EXPECT_THAT(text, EndsWith("\ndone\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(TerminalWidth, IsZeroForAFile) {
  std::FILE* file = std::tmpfile();
  EXPECT_EQ(TerminalWidth(file), 0);
  std::fclose(file);
}

}  // namespace
}  // namespace skein
