// SPDX-License-Identifier: Apache-2.0
#include "launch/visible_gpus.h"

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
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

uint32_t CountVisibleGpus(const std::optional<std::string>& visible_devices, uint32_t installed) {
  if (!visible_devices) return installed;
  uint32_t count = 0;
  for (absl::string_view entry : absl::StrSplit(*visible_devices, ',')) {
    if (!NamesGpu(absl::StripAsciiWhitespace(entry), installed)) break;
    ++count;
  }
  return count;
}

uint32_t CountVisibleGpus() {
#ifndef SKEIN_TORCH_HAS_CUDA
  return 0;
#endif
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const auto monitor = GpuMonitor::Open(MonotonicNow());
  return CountVisibleGpus(visible == nullptr ? std::nullopt : std::optional<std::string>(visible),
                          monitor.ok() ? static_cast<uint32_t>((*monitor)->gpus().size()) : 0);
}

}  // namespace skein
