// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_usage.h"

#include <algorithm>

namespace skein {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(500);
// The kernel counts in ticks of 10 ms: less than this is noise.
constexpr absl::Duration kShortest = absl::Milliseconds(100);

template <typename Get>
UsageSummary Summarize(const std::vector<UsageSample>& samples, const Get& get) {
  UsageSummary summary;
  double before = 0, weight = 0;
  bool first = true;
  for (const UsageSample& sample : samples) {
    const std::optional<double> value = get(sample);
    const double length = sample.seconds - before;
    before = sample.seconds;
    if (!value) continue;
    summary.average += *value * length;
    weight += length;
    summary.max = first ? *value : std::max(summary.max, *value);
    summary.min = first ? *value : std::min(summary.min, *value);
    first = false;
  }
  if (weight > 0) summary.average /= weight;
  return summary;
}

}  // namespace

UsageSummary SummarizeCpu(const std::vector<UsageSample>& samples) {
  return Summarize(samples, [](const UsageSample& sample) { return std::optional<double>(sample.cpu); });
}

std::vector<double> AverageCores(const std::vector<UsageSample>& samples) {
  size_t cores = 0;
  for (const UsageSample& sample : samples) cores = std::max(cores, sample.cores.size());
  std::vector<double> averages;
  for (size_t i = 0; i < cores; ++i) {
    const UsageSummary core = Summarize(samples, [i](const UsageSample& sample) {
      return i < sample.cores.size() ? std::optional<double>(sample.cores[i]) : std::nullopt;
    });
    averages.push_back(core.average);
  }
  return averages;
}

std::optional<UsageSummary> SummarizeGpu(const std::vector<UsageSample>& samples) {
  const bool any = std::any_of(samples.begin(), samples.end(), [](const UsageSample& one) { return one.gpu; });
  if (!any) return std::nullopt;
  return Summarize(samples, [](const UsageSample& sample) { return sample.gpu; });
}

void UsageRecorder::Begin(absl::Duration now) {
  begin_ = last_ = now;
  before_ = ParseCpuTimes(sources_.proc_stat());
  samples_.clear();
}

void UsageRecorder::Tick(absl::Duration now) {
  if (now - last_ >= kPeriod) Take(now);
}

void UsageRecorder::End(absl::Duration now) {
  if (now - last_ >= kShortest || samples_.empty()) Take(now);
}

void UsageRecorder::Take(absl::Duration now) {
  const NodeCpuTimes times = ParseCpuTimes(sources_.proc_stat());
  UsageSample sample;
  sample.seconds = absl::ToDoubleSeconds(now - begin_);
  sample.cpu = BusyRatio(before_.all, times.all);
  for (size_t i = 0; i < times.core.size(); ++i) {
    sample.cores.push_back(i < before_.core.size() ? BusyRatio(before_.core[i], times.core[i]) : 0);
  }
  if (sources_.gpu) sample.gpu = sources_.gpu();
  before_ = times;
  last_ = now;
  samples_.push_back(std::move(sample));
}

}  // namespace skein
