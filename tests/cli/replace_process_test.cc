// SPDX-License-Identifier: Apache-2.0
#include "cli/replace_process.h"

#include <cstdlib>
#include <iostream>

#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;

TEST(ReplaceProcessDeathTest, BecomesTheProgramWithItsArgumentsAndOneTorchThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const ScratchFolder folder;
  folder.WriteScript("program", "echo \"$# $1 $2 $OMP_NUM_THREADS\" >&2; exit 7");
  const auto replace = [&] {
    unsetenv("OMP_NUM_THREADS");
    std::cerr << ReplaceProcess(folder.path(), "program", {"--a", "b c"}) << std::endl;
    std::exit(1);
  };
  EXPECT_EXIT(replace(), testing::ExitedWithCode(7), "2 --a b c 1");
}

TEST(ReplaceProcess, WithoutTheProgramIsUnavailable) {
  const ScratchFolder folder;
  const auto status = ReplaceProcess(folder.path(), "program", {});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder.path() + "/program"));
}

TEST(ReplaceProcess, OfWhatIsNoProgramIsInternal) {
  const ScratchFolder folder;
  folder.WriteScript("program/inside", "");  // A folder may be "executed", but not by execv.
  EXPECT_TRUE(absl::IsInternal(ReplaceProcess(folder.path(), "program", {})));
}

}  // namespace
}  // namespace skein
