// SPDX-License-Identifier: Apache-2.0
// The resource sampler on a node with GPUs, which a fake library makes up.
#include <memory>
#include <string>
#include <utility>

#include "base/telemetry/resource_sampler.h"
#include "gmock/gmock.h"
#include "prometheus/text_serializer.h"
#include "tests/base/scripted_nvml.h"
#include "tests/testing/http_get.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::unique_ptr<GpuMonitor> Monitor() { return GpuMonitor::Open(absl::ZeroDuration(), FAKE_NVML).value_or(nullptr); }

std::string Exported(const prometheus::Registry& registry) {
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

TEST(ResourceSamplerWithGpus, ExportsEachFigureByGpu) {
  ScriptedNvml nvml(FAKE_NVML);
  auto monitor = Monitor();
  nvml->gpu[1].millijoules += 2500;
  prometheus::Registry registry;
  const ResourceSampler sampler(&registry, absl::Hours(1), std::move(monitor));
  ASSERT_THAT(sampler.newest().gpus, SizeIs(2));
  EXPECT_EQ(sampler.newest().gpus[0].power_watts, 50);
  const std::string text = Exported(registry);
  for (const char* line :
       {"skein_node_gpu_utilization_ratio{gpu=\"0\"} 0.25", "skein_node_gpu_utilization_ratio{gpu=\"1\"} 0.75",
        "skein_node_gpu_memory_used_bytes{gpu=\"1\"} 400", "skein_node_gpu_memory_total_bytes{gpu=\"1\"} 2000",
        "skein_node_gpu_energy_joules_total{gpu=\"1\"} 2.5", "skein_node_gpu_temperature_celsius{gpu=\"0\"} 40",
        "skein_node_gpu_info{gpu=\"1\",name=\"Fake 1\",uuid=\"GPU-1\"} 1"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + line + "\n"));
  }
}

TEST(ResourceSamplerWithGpus, PassesPromtool) {
  ScriptedNvml nvml(FAKE_NVML);
  prometheus::Registry registry;
  const ResourceSampler sampler(&registry, absl::Hours(1), Monitor());
  std::string complaints;
  EXPECT_EQ(RunWithInput("promtool check metrics", Exported(registry), &complaints), 0);
  EXPECT_EQ(complaints, "");
}

TEST(ResourceSamplerWithGpus, ExportsNothingThatNoGpuTells) {
  ScriptedNvml nvml(FAKE_NVML);
  nvml->failing = "nvmlDeviceGetUtilizationRates";
  prometheus::Registry registry;
  const ResourceSampler sampler(&registry, absl::Hours(1), Monitor());
  EXPECT_THAT(Exported(registry), Not(HasSubstr("skein_node_gpu_utilization_ratio")));
  EXPECT_THAT(Exported(registry), HasSubstr("skein_node_gpu_memory_used_bytes{gpu=\"1\"} 400"));
}

TEST(ResourceSamplerWithGpus, WithoutAMonitorExportsNothingOfGpus) {
  prometheus::Registry registry;
  const ResourceSampler sampler(&registry, absl::Hours(1));
  EXPECT_THAT(Exported(registry), Not(HasSubstr("gpu")));
  EXPECT_THAT(sampler.newest().gpus, SizeIs(0));
}

TEST(ResourceSamplerWithGpus, TakesBackAGaugeThatIsNoLongerTold) {
  ScriptedNvml nvml(FAKE_NVML);
  nvml->failing = "nvmlDeviceGetUtilizationRates";
  nvml->good_calls = 2;  // One sample's.
  auto monitor = Monitor();
  prometheus::Registry registry;
  ResourceSampler sampler(&registry, absl::Hours(1), std::move(monitor));
  EXPECT_THAT(Exported(registry), HasSubstr("skein_node_gpu_utilization_ratio{gpu=\"1\"} 0.75"));
  sampler.SetPeriod(absl::Milliseconds(1));
  WaitUntil([&] { return Exported(registry).find("skein_node_gpu_utilization_ratio") == std::string::npos; });
  EXPECT_THAT(Exported(registry), HasSubstr("skein_node_gpu_memory_used_bytes{gpu=\"1\"} 400"));
}

}  // namespace
}  // namespace skein
