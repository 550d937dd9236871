// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/telemetry/proc_text.h"

namespace skein {

// Utilisation of the machine since the previous sample, as shares 0-1.
struct UsageSample {
  double seconds = 0;  // Since the recording began.
  double cpu = 0;      // All cores.
  std::vector<double> cores;
  std::optional<double> gpu;
};

struct UsageSummary {
  double average = 0;  // Over time.
  double max = 0;      // Of the samples.
  double min = 0;
};

// Averages are weighted by the length of each sample. REQUIRES: samples are in order.
UsageSummary SummarizeCpu(const std::vector<UsageSample>& samples);
std::vector<double> AverageCores(const std::vector<UsageSample>& samples);
// nullopt: no sample has a GPU share.
std::optional<UsageSummary> SummarizeGpu(const std::vector<UsageSample>& samples);

// Takes a sample every 0.5 s while Tick() is called: Begin -> Tick ... -> End.   /proc/stat, GPU -> UsageSample
// Not thread-safe.
class UsageRecorder {
 public:
  struct Sources {
    std::function<std::string()> proc_stat;      // The text of /proc/stat.
    std::function<std::optional<double>()> gpu;  // 0-1; nullopt: unknown. Empty function = no GPU.
  };
  explicit UsageRecorder(Sources sources) : sources_(std::move(sources)) {}

  void Begin(absl::Duration now);
  // Takes a sample if one is due.
  void Tick(absl::Duration now);
  // Takes a last sample, unless the previous one is too recent to be meaningful.
  void End(absl::Duration now);
  const std::vector<UsageSample>& samples() const { return samples_; }

 private:
  void Take(absl::Duration now);

  const Sources sources_;
  absl::Duration begin_, last_;
  NodeCpuTimes before_;
  std::vector<UsageSample> samples_;
};

}  // namespace skein
