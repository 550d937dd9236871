// SPDX-License-Identifier: Apache-2.0
// The pages that `--print-man-page` makes from the help, as groff reads them.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/command/command_table.h"
#include "base/process/subprocess.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string BinFolder() {
  const char* bin = std::getenv("SKEIN_BIN");
  return bin == nullptr ? ProgramFolder() + "/.." : std::string(bin);
}

// Standard output and error of a shell's command, which must end with code 0.
std::string Shell(const std::string& command) {
  const ScratchFolder folder;
  auto process = Subprocess::Spawn({.argv = {"/bin/sh", "-c", command}, .output_path = folder.path() + "/out"});
  EXPECT_TRUE(process.ok()) << process.status();
  EXPECT_EQ((*process)->Wait(absl::Seconds(30)), 0) << command << ": " << folder.Read("out");
  return folder.Read("out");
}

// The words of a page with a space before and after each: lines are filled up with more.
std::string Words(const std::string& page) {
  return absl::StrCat(" ", absl::StrJoin(absl::StrSplit(page, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " "), " ");
}

constexpr const char* kPrograms[] = {"skein",      "skein-actor", "skein-bench",   "skein-coordinator",
                                     "skein-eval", "skein-fit",   "skein-learner", "skein-policy"};

class ManPage : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Programs, ManPage, testing::ValuesIn(kPrograms), [](const auto& info) {
  return absl::StrReplaceAll(info.param, {{"-", "_"}});
});

void ExpectAllFlags(const Command& command, const std::string& page) {
  for (const Flag& flag : command.flags) EXPECT_THAT(page, HasSubstr(" " + flag.name + " ")) << command.name;
  for (const Command& verb : command.verbs) {
    if (!verb.hidden) ExpectAllFlags(verb, page);
  }
}

TEST_P(ManPage, IsReadWithoutAWarningAndHasEveryFlag) {
  const ScratchFolder folder;
  const std::string program = BinFolder() + "/" + GetParam(), file = folder.path() + "/page.1";
  Shell(program + " --print-man-page > " + file);
  EXPECT_EQ(Shell("groff -man -Tutf8 -ww -z " + file), "");
  const std::string page = Shell("groff -man -rHY=0 -Tascii -P-c -P-b -P-u " + file);
  for (const char* section : {"NAME", "SYNOPSIS", "FLAGS", "EXIT STATUS", "SEE ALSO"}) {
    EXPECT_THAT(page, HasSubstr(std::string("\n") + section + "\n"));
  }
  const auto command = CommandFromJson(Shell(program + " --print-flags"));
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_THAT(Words(page), HasSubstr(absl::StrCat(" NAME ", GetParam(), " - ")));
  ExpectAllFlags(*command, Words(page));
  const std::string source = Shell("cat " + file);
  for (const std::string other : kPrograms) {
    if (other == GetParam()) continue;
    EXPECT_THAT(source.substr(source.find(".SH SEE ALSO")),
                HasSubstr(absl::StrCat("\\fB", absl::StrReplaceAll(other, {{"-", "\\-"}}), "\\fR(1)")));
  }
  EXPECT_THAT(page, Not(HasSubstr("check-history")));
}

}  // namespace
}  // namespace skein
