// SPDX-License-Identifier: Apache-2.0
#include "tests/env/mujoco_warnings.h"

#include <gtest/gtest.h>

#include "env/mujoco/library.h"

namespace skein {
namespace {

int64_t expected = 0;

class WarningsFailTests : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo&) override {
    expected = 0;
    before_ = MujocoWarningCount();
  }
  void OnTestEnd(const testing::TestInfo&) override {
    EXPECT_EQ(MujocoWarningCount() - before_, expected) << "last warning: " << LastMujocoWarning();
  }

 private:
  int64_t before_ = 0;
};

// Linking this file is all that a test needs to do.
const bool installed = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new WarningsFailTests);
  return true;
}();

}  // namespace

void ExpectMujocoWarnings(int64_t count) { expected = count; }

}  // namespace skein
