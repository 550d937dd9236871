// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/gpu_monitor.h"

#include "gmock/gmock.h"
#include "tests/base/scripted_nvml.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr absl::Duration kStart = absl::Seconds(100);

TEST(GpuMonitor, ReadsEveryFigureOfEveryGpu) {
  ScriptedNvml nvml(FAKE_NVML);
  auto monitor = GpuMonitor::Open(kStart, FAKE_NVML);
  ASSERT_TRUE(monitor.ok()) << monitor.status();
  ASSERT_THAT((*monitor)->gpus(), SizeIs(2));
  EXPECT_EQ((*monitor)->gpus()[1].index, 1u);
  EXPECT_EQ((*monitor)->gpus()[1].name, "Fake 1");
  EXPECT_EQ((*monitor)->gpus()[1].uuid, "GPU-1");
  nvml->gpu[1].millijoules += 2500;
  const auto samples = (*monitor)->Sample(kStart);
  ASSERT_THAT(samples, SizeIs(2));
  EXPECT_EQ(samples[0].utilization_ratio, 0.25);
  EXPECT_EQ(samples[0].energy_joules, 0);
  EXPECT_EQ(samples[1].utilization_ratio, 0.75);
  EXPECT_EQ(samples[1].memory_used_bytes, 400u);
  EXPECT_EQ(samples[1].memory_total_bytes, 2000u);
  EXPECT_EQ(samples[1].power_watts, 150);
  EXPECT_EQ(samples[1].energy_joules, 2.5);
  EXPECT_EQ(samples[1].temperature_celsius, 60);
}

TEST(GpuMonitor, OpensTheDriversLibraryByItsName) {
  ScriptedNvml nvml(FAKE_NVML);  // A library of that name is loaded, so that no other is looked for.
  EXPECT_EQ((*GpuMonitor::Open(kStart))->gpus()[0].name, "Fake 0");
}

TEST(GpuMonitor, ShutsTheLibraryDown) {
  ScriptedNvml nvml(FAKE_NVML);
  {
    const auto monitor = GpuMonitor::Open(kStart, FAKE_NVML);
    EXPECT_EQ(nvml->started, 1);
  }
  EXPECT_EQ(nvml->started, 0);
}

TEST(GpuMonitor, CountsEnergyOnWhereTheDriverBeginsAnew) {
  ScriptedNvml nvml(FAKE_NVML);
  auto monitor = GpuMonitor::Open(kStart, FAKE_NVML);
  nvml->gpu[0].millijoules += 4000;
  EXPECT_EQ((*monitor)->Sample(kStart)[0].energy_joules, 4);
  nvml->gpu[0].millijoules = 1000;  // Since the driver was loaded again.
  EXPECT_EQ((*monitor)->Sample(kStart)[0].energy_joules, 5);
}

TEST(GpuMonitor, CatchesUpOnEnergyAfterACallThatFailed) {
  ScriptedNvml nvml(FAKE_NVML);
  auto monitor = GpuMonitor::Open(kStart, FAKE_NVML);
  nvml->failing = "nvmlDeviceGetTotalEnergyConsumption";
  nvml->gpu[0].millijoules += 4000;
  const GpuSample failed = (*monitor)->Sample(kStart + absl::Seconds(1))[0];
  EXPECT_EQ(failed.energy_joules, std::nullopt);  // And not 50 W x 1 s besides.
  EXPECT_EQ(failed.power_watts, 50);
  nvml->failing = "";
  EXPECT_EQ((*monitor)->Sample(kStart + absl::Seconds(2))[0].energy_joules, 4);
}

TEST(GpuMonitor, IntegratesPowerWhereTheLibraryHasNoCounter) {
  ScriptedNvml nvml(FAKE_NVML_OLD);
  auto monitor = GpuMonitor::Open(kStart, FAKE_NVML_OLD);
  ASSERT_TRUE(monitor.ok()) << monitor.status();
  EXPECT_EQ((*monitor)->Sample(kStart + absl::Seconds(2))[0].energy_joules, 100);  // 50 W x 2 s
  nvml->gpu[0].milliwatts = 70000;
  EXPECT_EQ((*monitor)->Sample(kStart + absl::Seconds(3))[0].energy_joules, 160);  // + (50 W + 70 W) / 2 x 1 s
  // Nothing is known of the second in which the power is not told.
  nvml->failing = "nvmlDeviceGetPowerUsage";
  EXPECT_EQ((*monitor)->Sample(kStart + absl::Seconds(4))[0].energy_joules, std::nullopt);
  nvml->failing = "";
  EXPECT_EQ((*monitor)->Sample(kStart + absl::Seconds(5))[0].energy_joules, 160);
  EXPECT_EQ((*monitor)->Sample(kStart + absl::Seconds(6))[0].energy_joules, 230);  // + 70 W x 1 s
}

TEST(GpuMonitor, IntegratesPowerWhereTheGpuHasNoCounter) {
  ScriptedNvml nvml(FAKE_NVML);
  nvml->failing = "nvmlDeviceGetTotalEnergyConsumption";
  auto monitor = GpuMonitor::Open(kStart, FAKE_NVML);
  EXPECT_EQ((*monitor)->Sample(kStart + absl::Seconds(2))[1].energy_joules, 300);  // 150 W x 2 s
}

// One call at a time fails; everything else is told.
TEST(GpuMonitor, LeavesOutOnlyWhatACallDoesNotTell) {
  struct Case {
    const char* function;
    bool utilization, memory, power, temperature;
  };
  for (const Case& expected : {Case{"nvmlDeviceGetUtilizationRates", false, true, true, true},
                               Case{"nvmlDeviceGetMemoryInfo", true, false, true, true},
                               Case{"nvmlDeviceGetPowerUsage", true, true, false, true},
                               Case{"nvmlDeviceGetTemperature", true, true, true, false}}) {
    ScriptedNvml nvml(FAKE_NVML);
    nvml->failing = expected.function;
    const GpuSample sample = (*GpuMonitor::Open(kStart, FAKE_NVML))->Sample(kStart)[0];
    EXPECT_EQ(sample.utilization_ratio.has_value(), expected.utilization) << expected.function;
    EXPECT_EQ(sample.memory_used_bytes.has_value(), expected.memory) << expected.function;
    EXPECT_EQ(sample.memory_total_bytes.has_value(), expected.memory) << expected.function;
    EXPECT_EQ(sample.power_watts.has_value(), expected.power) << expected.function;
    EXPECT_EQ(sample.temperature_celsius.has_value(), expected.temperature) << expected.function;
    EXPECT_TRUE(sample.energy_joules) << expected.function;
  }
}

TEST(GpuMonitor, TellsNoEnergyOfAGpuWithoutCounterAndPower) {
  ScriptedNvml nvml(FAKE_NVML_OLD);
  nvml->failing = "nvmlDeviceGetPowerUsage";
  auto monitor = GpuMonitor::Open(kStart, FAKE_NVML_OLD);
  EXPECT_EQ((*monitor)->Sample(kStart + absl::Seconds(1))[0].energy_joules, std::nullopt);
}

TEST(GpuMonitor, TakesGpusWithoutNames) {
  ScriptedNvml nvml(FAKE_NVML);
  nvml->failing = "nvmlDeviceGetName";
  EXPECT_EQ((*GpuMonitor::Open(kStart, FAKE_NVML))->gpus()[0].name, "");
  nvml->failing = "nvmlDeviceGetUUID";
  EXPECT_EQ((*GpuMonitor::Open(kStart, FAKE_NVML))->gpus()[0].uuid, "");
}

TEST(GpuMonitor, SkipsAGpuThatMayNotBeUsedAndKeepsTheOthersNumbers) {
  ScriptedNvml nvml(FAKE_NVML);
  nvml->refused_gpu = 0;
  auto monitor = GpuMonitor::Open(kStart, FAKE_NVML);
  ASSERT_THAT((*monitor)->gpus(), SizeIs(1));
  EXPECT_EQ((*monitor)->gpus()[0].index, 1u);
  EXPECT_EQ((*monitor)->Sample(kStart)[0].utilization_ratio, 0.75);
}

TEST(GpuMonitor, IsUnavailableWithTheReason) {
  const auto reason = [](const std::string& library) {
    const absl::Status status = GpuMonitor::Open(kStart, library).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(reason("libno-such-library.so.1"), HasSubstr("no NVIDIA driver (libno-such-library.so.1)"));
  EXPECT_EQ(reason("libm.so.6"), "libm.so.6 lacks functions that are needed");
  ScriptedNvml nvml(FAKE_NVML);
  nvml->init_error = 9;
  EXPECT_THAT(reason(FAKE_NVML), HasSubstr("does not start (NVML error 9)"));
  EXPECT_EQ(nvml->started, 0);
  nvml->init_error = 0;
  nvml->gpus = 0;
  EXPECT_THAT(reason(FAKE_NVML), HasSubstr("knows no GPU"));
  nvml->gpus = 2;
  nvml->failing = "nvmlDeviceGetCount_v2";
  EXPECT_THAT(reason(FAKE_NVML), HasSubstr("knows no GPU"));
  EXPECT_EQ(nvml->started, 0);
}

TEST(MeanUtilization, IsOverTheGpusThatTell) {
  EXPECT_EQ(MeanUtilization({{.utilization_ratio = 0.25}, {}, {.utilization_ratio = 0.75}}), 0.5);
  EXPECT_EQ(MeanUtilization({{}, {}}), std::nullopt);
  EXPECT_EQ(MeanUtilization({}), std::nullopt);
}

}  // namespace
}  // namespace skein
