// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/resource_sampler.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"
#include "tests/learner/sample_metrics.h"
#include "tests/testing/wait_until.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::Not;

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
  for (const char* name : {"process_cpu_seconds_total ", "process_resident_memory_bytes ", "process_open_fds ",
                           "process_threads ", "process_start_time_seconds ", "skein_build_info{commit=\""}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + name));
  }
  EXPECT_THAT(text, Not(HasSubstr("skein_node_")));
}

TEST(ResourceSampler, TellsWhenTheProcessStarted) {
  prometheus::Registry registry;
  const ResourceSampler sampler(&registry, absl::Hours(1));
  const absl::Time started =
      absl::FromUnixSeconds(0) + absl::Seconds(MetricValue(registry, "process_start_time_seconds"));
  EXPECT_LT(started, absl::Now() + absl::Seconds(2));  // The time of booting is known in whole seconds.
  EXPECT_GT(started, absl::Now() - absl::Hours(1));
}

bool ExportsNode(const prometheus::Registry& registry) {
  const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
  const bool cores = absl::StrContains(text, "\nskein_node_cpu_utilization_ratio{core=\"0\"} ");
  EXPECT_EQ(absl::StrContains(text, "\nskein_node_cpu_utilization_ratio{core=\"all\"} "), cores);
  EXPECT_EQ(absl::StrContains(text, "\nskein_node_memory_size_bytes "), cores);
  EXPECT_EQ(absl::StrContains(text, "\nskein_node_memory_available_bytes "), cores);
  return cores;
}

TEST(ResourceSampler, OnlyOneOfARunTellsOfTheNodeAndAnotherTakesOver) {
  const std::string run =
      absl::StrCat("run of process ", getpid(), " with a name longer than an address, ", std::string(100, 'x'));
  prometheus::Registry one, other, of_another_run;
  auto first = std::make_unique<ResourceSampler>(&one, absl::Milliseconds(1));
  first->ExportNode(run);
  ASSERT_TRUE(WaitUntil([&] { return ExportsNode(one); }));
  ResourceSampler second(&other, absl::Milliseconds(1));
  second.ExportNode(run);
  ResourceSampler third(&of_another_run, absl::Milliseconds(1));
  third.ExportNode(run + "!");
  EXPECT_TRUE(WaitUntil([&] { return ExportsNode(of_another_run); }));
  EXPECT_FALSE(ExportsNode(other));
  first.reset();
  EXPECT_TRUE(WaitUntil([&] { return ExportsNode(other); }));
  second.ExportNode(run + "!");  // The third one has that.
  EXPECT_TRUE(WaitUntil([&] { return !ExportsNode(other); }));
}

}  // namespace
}  // namespace skein
