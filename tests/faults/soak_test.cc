// SPDX-License-Identifier: Apache-2.0
// Row 34: everything at once, for a while. `scripts/soak.py --seconds 3600` is the same for an hour.
#include <cstdlib>

#include "gmock/gmock.h"
#include "tests/testing/program.h"

namespace skein {
namespace {

TEST(FaultRow34, ResourcesAreFlatStepsAreConservedAndTheReturnRises) {
  const ScratchFolder folder;
  const Ended soak = RunToEnd("/usr/bin/env",
                              {"python3", "-B", "scripts/soak.py", "--seconds", "45", "--seed", "34", "--actors", "3",
                               "--pause", "1", "--bin", std::getenv("SKEIN_BIN"), "--out", folder.path() + "/soak"},
                              absl::Minutes(6));
  EXPECT_EQ(soak.code, 0) << soak.out << soak.err;
  EXPECT_THAT(soak.out, testing::HasSubstr("| accepted more than once | 0 |"));
  EXPECT_NE(folder.Read("soak.json"), "");
}

}  // namespace
}  // namespace skein
