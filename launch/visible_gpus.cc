// SPDX-License-Identifier: Apache-2.0
#include "launch/visible_gpus.h"

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
