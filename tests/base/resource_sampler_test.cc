// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/resource_sampler.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"

namespace skein {
namespace {

using testing::HasSubstr;

TEST(ResourceSampler, HasASampleFromTheStart) {
  prometheus::Registry registry;
  const ResourceSampler sampler(&registry, absl::Hours(1));
  const ResourceSample sample = sampler.newest();
  EXPECT_GE(sample.core_ratio.size(), 1u);
  EXPECT_GE(sample.cpu_ratio, 0);
  EXPECT_LE(sample.cpu_ratio, 1);
  EXPECT_GT(sample.process_cpu_seconds, 0);
  EXPECT_GT(sample.resident_bytes, 1u << 20);
  EXPECT_GE(sample.open_fds, 3u);
  EXPECT_GE(sample.threads, 1u);
  EXPECT_GT(sample.node_memory_total_bytes, sample.node_memory_available_bytes);
  EXPECT_GT(sample.node_memory_available_bytes, 0u);
}

TEST(ResourceSampler, CountsOpenFiles) {
  prometheus::Registry registry;
  const uint64_t before = ResourceSampler(&registry, absl::Hours(1)).newest().open_fds;
  const int fd = open("/dev/null", O_RDONLY);
  prometheus::Registry other_registry;
  EXPECT_EQ(ResourceSampler(&other_registry, absl::Hours(1)).newest().open_fds, before + 1);
  close(fd);
}

TEST(ResourceSampler, GoesOnSampling) {
  prometheus::Registry registry;
  const ResourceSampler sampler(&registry, absl::Milliseconds(1));
  const double first = sampler.newest().process_cpu_seconds;
  // Busy until the sampler has seen it: CPU time is what it measures.
  double now = first;
  for (uint64_t i = 0; now == first && i < (uint64_t{1} << 33); ++i) now = sampler.newest().process_cpu_seconds;
  EXPECT_GT(now, first);
}

TEST(ResourceSampler, GoesOnByItsNewPeriod) {
  prometheus::Registry registry;
  ResourceSampler sampler(&registry, absl::Hours(1));
  sampler.SetPeriod(absl::Milliseconds(1));
  sampler.SetPeriod(absl::ZeroDuration());  // Ignored.
  const double first = sampler.newest().process_cpu_seconds;
  double now = first;
  for (uint64_t i = 0; now == first && i < (uint64_t{1} << 33); ++i) now = sampler.newest().process_cpu_seconds;
  EXPECT_GT(now, first);
}

TEST(ResourceSampler, ExportsItsMetrics) {
  prometheus::Registry registry;
  const ResourceSampler sampler(&registry, absl::Hours(1));
  const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
  for (const char* name :
       {"process_cpu_seconds_total ", "process_resident_memory_bytes ", "process_open_fds ", "process_threads ",
        "skein_node_memory_size_bytes ", "skein_node_memory_available_bytes ",
        "skein_node_cpu_utilization_ratio{core=\"all\"} ", "skein_node_cpu_utilization_ratio{core=\"0\"} "}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + name));
  }
}

}  // namespace
}  // namespace skein
