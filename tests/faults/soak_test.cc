// SPDX-License-Identifier: Apache-2.0
// Row 34: everything at once, for a while. `scripts/soak.py --seconds 3600` is the same for an hour.
#include <cstdlib>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/testing/program.h"

namespace skein {
namespace {

TEST(FaultRow34, ResourcesAreFlatStepsAreConservedTheHistoryHoldsAndTheReturnRises) {
  const ScratchFolder folder;
  const Ended soak = RunToEnd("/usr/bin/env",
                              {"python3", "-B", "scripts/soak.py", "--seconds", "45", "--seed", "34", "--actors", "3",
                               "--pause", "1", "--bin", std::getenv("SKEIN_BIN"), "--out", folder.path() + "/soak"},
                              absl::Minutes(6));
  EXPECT_EQ(soak.code, 0) << soak.out << soak.err;
  EXPECT_THAT(soak.out, testing::HasSubstr("PASSED: everything held"));
  const auto summary = nlohmann::json::parse(folder.Read("soak.json"), nullptr, false);
  ASSERT_TRUE(summary.is_object()) << soak.out;
  const auto history = summary.value("history", nlohmann::json::object());
  EXPECT_EQ(history.value("breaches", -1), 0) << history;
  EXPECT_EQ(history.value("accepted_more_than_once", -1), 0) << history;
  EXPECT_GT(history.value("batches", nlohmann::json::object()).value("accepted", 0), 0) << history;
  EXPECT_THAT(folder.Read("soak.csv"), testing::HasSubstr(",learner,"));
}

}  // namespace
}  // namespace skein
