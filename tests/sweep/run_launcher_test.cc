// SPDX-License-Identifier: Apache-2.0
// With a stand-in for skein, which leaves what a training leaves and ends.
#include "sweep/run_launcher.h"

#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

constexpr uint64_t kTotal = 200000;

class RunLauncherTest : public testing::Test {
 protected:
  RunLauncherTest() {
    folder_.Write("base.yaml", ReadFile("configs/cartpole_ppo.yaml").value());
    folder_.Write("log/nothing", "");
  }

  // `checkpoint`: its env steps, with 12 digits; empty = none.
  JobEnd EndOf(const std::string& metric, const std::string& checkpoint, bool evaluates, int code) {
    const std::string run = folder_.path() + "/trial-00000-s0";
    std::string script = absl::StrCat("mkdir -p ", run, "/checkpoints; ");
    if (!checkpoint.empty()) {
      const std::string step = absl::StrCat(run, "/checkpoints/step_", checkpoint);
      absl::StrAppend(&script, "mkdir -p ", step, "; touch ", step, "/DONE; ");
    }
    if (evaluates) absl::StrAppend(&script, "echo '{\"return_mean\": 7}' >", run, "/eval.json; ");
    folder_.WriteScript("skein", absl::StrCat(script, "exit ", code, "\n"));
    RunLauncher launcher(
        {.folder = folder_.path(), .program_folder = folder_.path(), .metric = metric, .total_steps = kTotal}, &space_);
    const RunKey key;
    EXPECT_EQ(launcher.Start({key, {}, 1, kTotal}), absl::OkStatus());
    std::vector<JobEnd> ends;
    EXPECT_TRUE(WaitUntil([&] { return !(ends = launcher.Poll()).empty(); }, absl::Seconds(30)));
    return ends.empty() ? JobEnd() : ends[0];
  }

  const ScratchFolder folder_;
  const Space space_;
};

TEST_F(RunLauncherTest, KnowsHowAJobHasEnded) {
  EXPECT_EQ(EndOf("episode_return_mean", "000000200000", false, 0).how, JobEnd::How::kDone);
  EXPECT_EQ(EndOf("episode_return_mean", "000000200000", false, 64).how, JobEnd::How::kRefused);
  EXPECT_EQ(EndOf("episode_return_mean", "000000200000", false, 70).how, JobEnd::How::kFailed);
}

// Else it would be started again for ever.
TEST_F(RunLauncherTest, AnEndShortOfItsTaskIsAFailure) {
  const JobEnd early = EndOf("episode_return_mean", "000000000100", false, 0);
  EXPECT_EQ(early.how, JobEnd::How::kFailed);
  EXPECT_EQ(early.why, "it ended at 100 of 200000 env steps");
  const JobEnd without = EndOf("eval.return_mean", "000000200000", false, 0);
  EXPECT_EQ(without.how, JobEnd::How::kFailed);
  EXPECT_EQ(without.why, "it ended without eval.json");
  EXPECT_EQ(EndOf("eval.return_mean", "000000200000", true, 0).how, JobEnd::How::kDone);
}

}  // namespace
}  // namespace skein
