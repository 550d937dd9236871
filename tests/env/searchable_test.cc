// SPDX-License-Identifier: Apache-2.0
#include "env/searchable.h"

#include <limits>

#include "env/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace skein {
namespace {

using testing::HasSubstr;

TEST(Searchable, AreEnvironmentsOfOneAgentWithBoundedActions) {
  for (const EnvInfo& info : ListEnvs()) {
    EXPECT_EQ(CheckSearchable(info.spec, false).ok(), info.spec.num_agents == 1) << info.id;
    EXPECT_TRUE(CheckSearchable(info.spec, true).ok()) << info.id;
  }
  EXPECT_THAT(std::string(CheckSearchable(*FindEnvSpec("UavCover-v0"), false).message()),
              HasSubstr("UavCover-v0 has 10 agents; actors search over directions in environments of one agent"));
}

TEST(Searchable, ActionsWithoutFixedBoundsAreRefused) {
  EnvSpec spec = *FindEnvSpec("Hopper-v5");
  spec.action_high[2] = std::numeric_limits<float>::infinity();
  for (const bool on_device : {false, true}) {
    const absl::Status status = CheckSearchable(spec, on_device);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("env.id: element 2 of the actions of Hopper-v5 has no fixed"));
  }
  spec.action_high[2] = 1e6;  // What Python's servers make of an infinite bound.
  EXPECT_FALSE(CheckSearchable(spec, false).ok());
  spec.action_high[2] = 1e5;
  EXPECT_TRUE(CheckSearchable(spec, false).ok());
  spec.action_low.clear();
  EXPECT_THAT(std::string(CheckSearchable(spec, false).message()), HasSubstr("element 0 of the actions"));
}

}  // namespace
}  // namespace skein
