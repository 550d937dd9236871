// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace skein {

// How busy this machine's NVIDIA GPUs are, through the driver's NVML library, which is opened when it is there.
// Not thread-safe.
class GpuMonitor {
 public:
  // Unavailable, with the reason: no library, no driver, no GPU.
  static absl::StatusOr<std::unique_ptr<GpuMonitor>> Open();
  ~GpuMonitor();

  const std::vector<std::string>& names() const { return names_; }
  // Share of the last moments (up to a second, by the driver's measure) in which a kernel ran, 0-1: the mean over all
  // GPUs. 0 for those that do not tell.
  double Utilization() const;

 private:
  struct Library;
  explicit GpuMonitor(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
  std::vector<void*> devices_;
  std::vector<std::string> names_;
};

}  // namespace skein
