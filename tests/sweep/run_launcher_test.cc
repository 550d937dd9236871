// SPDX-License-Identifier: Apache-2.0
// With a stand-in for skein, which leaves what a training leaves and ends.
#include "sweep/run_launcher.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/file.h"
#include "gmock/gmock.h"
#include "tests/cli/scratch_folder.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

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

TEST_F(RunLauncherTest, EachSlotHasItsGpuAndItsShare) {
  folder_.WriteScript("skein", absl::StrCat("echo \"$CUDA_VISIBLE_DEVICES $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $*\" >>",
                                            folder_.path(), "/seen; sleep 100\n"));
  RunLauncher launcher({.folder = folder_.path(),
                        .program_folder = folder_.path(),
                        .metric = "episode_return_mean",
                        .total_steps = kTotal,
                        .slots = 2,
                        .gpus = {"4", "GPU-7"},
                        .share = {.cpus = 0.5, .gpus = 0.25}},
                       &space_);
  EXPECT_EQ(launcher.cores_per_slot(), 0.5);
  const auto start = [&](uint32_t trial, int lines) {
    EXPECT_EQ(launcher.Start({{false, trial, 0}, {}, 1, kTotal}), absl::OkStatus());
    EXPECT_TRUE(WaitUntil(
        [&] {
          const std::string seen = folder_.Read("seen");
          return std::count(seen.begin(), seen.end(), '\n') == lines;
        },
        absl::Seconds(30)));
    const std::vector<std::string> seen = absl::StrSplit(folder_.Read("seen"), '\n', absl::SkipEmpty());
    return seen.back();
  };
  const std::string first = start(0, 1);
  EXPECT_THAT(first, StartsWith("4 25 "));
  EXPECT_THAT(first, HasSubstr("--set resources.learner.gpus=0.25"));  // The cap of Torch's allocator.
  EXPECT_THAT(start(1, 2), StartsWith("GPU-7 25 "));
  EXPECT_THAT(launcher.held_by(), StartsWith("CPU by "));
  // The slot that is free again, not the next number.
  launcher.Stop({false, 0, 0});
  EXPECT_TRUE(WaitUntil([&] { return !launcher.Poll().empty(); }, absl::Seconds(30)));
  EXPECT_THAT(start(2, 3), StartsWith("4 25 "));
}

}  // namespace
}  // namespace skein
