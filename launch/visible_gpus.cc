// SPDX-License-Identifier: Apache-2.0
#include "launch/visible_gpus.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/clock.h"
#include "base/telemetry/gpu_monitor.h"

namespace skein {
namespace {

bool NamesGpu(absl::string_view entry, uint32_t installed) {
  if (absl::StartsWith(entry, "GPU-") || absl::StartsWith(entry, "MIG-")) return true;
  uint32_t index = 0;
  return absl::SimpleAtoi(entry, &index) && (installed == 0 || index < installed);
}

}  // namespace

std::vector<std::string> VisibleGpus(const std::optional<std::string>& visible_devices, uint32_t installed) {
  std::vector<std::string> gpus;
  if (!visible_devices) {
    for (uint32_t i = 0; i < installed; ++i) gpus.push_back(absl::StrCat(i));
    return gpus;
  }
  for (absl::string_view entry : absl::StrSplit(*visible_devices, ',')) {
    entry = absl::StripAsciiWhitespace(entry);
    if (!NamesGpu(entry, installed)) break;
    gpus.emplace_back(entry);
  }
  return gpus;
}

std::vector<uint64_t> VisibleGpuMemory(const std::optional<std::string>& visible_devices,
                                       const std::vector<std::optional<uint64_t>>& installed) {
  if (installed.empty() || !installed[0] ||
      std::count(installed.begin(), installed.end(), installed[0]) != static_cast<ptrdiff_t>(installed.size())) {
    return {};
  }
  const std::vector<std::string> gpus = VisibleGpus(visible_devices, static_cast<uint32_t>(installed.size()));
  for (const std::string& gpu : gpus) {
    if (absl::StartsWith(gpu, "MIG-")) return {};
  }
  return std::vector<uint64_t>(gpus.size(), *installed[0]);
}

std::vector<uint64_t> VisibleGpuMemory(const std::optional<std::string>& visible_devices) {
  const absl::Duration now = MonotonicNow();
  const auto monitor = GpuMonitor::Open(now);
  if (!monitor.ok()) return {};
  std::vector<std::optional<uint64_t>> installed;
  for (const GpuSample& gpu : (*monitor)->Sample(now)) installed.push_back(gpu.memory_total_bytes);
  return VisibleGpuMemory(visible_devices, installed);
}

std::vector<std::string> VisibleGpus() {
#ifndef SKEIN_TORCH_HAS_CUDA
  return {};
#endif
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const auto monitor = GpuMonitor::Open(MonotonicNow());
  return VisibleGpus(visible == nullptr ? std::nullopt : std::optional<std::string>(visible),
                     monitor.ok() ? static_cast<uint32_t>((*monitor)->gpus().size()) : 0);
}

uint32_t CountVisibleGpus() { return static_cast<uint32_t>(VisibleGpus().size()); }

}  // namespace skein
