// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_usage.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace skein {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// A machine of two cores whose busy and idle ticks the test sets.
struct FakeMachine {
  int busy0 = 0, idle0 = 0, busy1 = 0, idle1 = 0;
  std::optional<double> gpu = 0;

  UsageRecorder::Sources Sources(bool with_gpu) {
    UsageRecorder::Sources sources;
    sources.proc_stat = [this] {
      return absl::StrCat("cpu ", busy0 + busy1, " 0 0 ", idle0 + idle1, "\ncpu0 ", busy0, " 0 0 ", idle0, "\ncpu1 ",
                          busy1, " 0 0 ", idle1, "\n");
    };
    if (with_gpu) sources.gpu = [this] { return gpu; };
    return sources;
  }
};

TEST(ScalingUsage, TakesASampleEachHalfSecond) {
  FakeMachine machine{.busy0 = 1000, .idle0 = 5, .busy1 = 7, .idle1 = 9};
  UsageRecorder recorder(machine.Sources(true));
  recorder.Begin(absl::Seconds(10));
  recorder.Tick(absl::Milliseconds(10400));
  EXPECT_THAT(recorder.samples(), IsEmpty());
  machine = {.busy0 = 1050, .idle0 = 5, .busy1 = 7, .idle1 = 59, .gpu = 0.4};
  recorder.Tick(absl::Milliseconds(10500));
  machine.idle0 += 25;
  machine.idle1 += 25;
  machine.gpu = 0.8;
  recorder.End(absl::Milliseconds(10750));
  ASSERT_THAT(recorder.samples(), SizeIs(2));
  EXPECT_DOUBLE_EQ(recorder.samples()[0].cpu, 0.5);  // 50 of 100 ticks.
  EXPECT_THAT(recorder.samples()[0].cores, ElementsAre(1.0, 0.0));
  EXPECT_DOUBLE_EQ(recorder.samples()[1].cpu, 0);
  EXPECT_DOUBLE_EQ(recorder.samples()[1].seconds, 0.75);

  // The first counts for 0.5 s, the second for 0.25 s.
  const UsageSummary cpu = SummarizeCpu(recorder.samples());
  EXPECT_THAT(cpu.average, DoubleNear(0.5 * 2 / 3, 1e-9));
  EXPECT_EQ(cpu.max, 0.5);
  EXPECT_EQ(cpu.min, 0);
  EXPECT_THAT(AverageCores(recorder.samples()), ElementsAre(DoubleNear(2.0 / 3, 1e-9), 0));
  const auto gpu = SummarizeGpu(recorder.samples());
  ASSERT_TRUE(gpu);
  EXPECT_THAT(gpu->average, DoubleNear((0.4 * 2 + 0.8) / 3, 1e-9));
  EXPECT_EQ(gpu->max, 0.8);
}

TEST(ScalingUsage, LeavesOutAnEndThatIsTooShortToTell) {
  FakeMachine machine;
  UsageRecorder recorder(machine.Sources(false));
  recorder.Begin(absl::Seconds(0));
  recorder.Tick(absl::Seconds(1));
  recorder.End(absl::Milliseconds(1050));
  EXPECT_THAT(recorder.samples(), SizeIs(1));
  EXPECT_FALSE(SummarizeGpu(recorder.samples()));

  recorder.Begin(absl::Seconds(2));
  recorder.End(absl::Milliseconds(2050));  // Better than none.
  EXPECT_THAT(recorder.samples(), SizeIs(1));
}

TEST(ScalingUsage, LeavesOutMomentsInWhichTheGpuDoesNotTell) {
  FakeMachine machine;
  UsageRecorder recorder(machine.Sources(true));
  recorder.Begin(absl::Seconds(0));
  machine.gpu = 0.5;
  recorder.Tick(absl::Seconds(1));
  machine.gpu = std::nullopt;
  recorder.End(absl::Seconds(2));
  ASSERT_THAT(recorder.samples(), SizeIs(2));
  EXPECT_EQ(SummarizeGpu(recorder.samples())->average, 0.5);
}

TEST(ScalingUsage, OfNothingIsZero) {
  EXPECT_EQ(SummarizeCpu({}).average, 0);
  EXPECT_THAT(AverageCores({}), IsEmpty());
  EXPECT_FALSE(SummarizeGpu({}));
}

}  // namespace
}  // namespace skein
