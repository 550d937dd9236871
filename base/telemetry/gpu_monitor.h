// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace skein {

struct GpuInfo {
  unsigned index = 0;  // NVML's: by PCI bus.
  std::string name;    // E.g. "NVIDIA H200"; empty = the driver does not tell.
  std::string uuid;    // "GPU-..."; likewise.
};

// One GPU at one time. Nullopt: the driver does not tell, now or ever.
struct GpuSample {
  std::optional<double> utilization_ratio;  // Share of the last moments, up to a second, in which a kernel ran, 0-1.
  std::optional<uint64_t> memory_used_bytes;
  std::optional<uint64_t> memory_total_bytes;
  std::optional<double> power_watts;
  std::optional<double> energy_joules;  // Used since the monitor was opened. Never falls.
  std::optional<double> temperature_celsius;
};

// How busy this machine's NVIDIA GPUs are.   driver's NVML library -> GpuSample
// All of the node's GPUs, or of the container's: NVML knows nothing of CUDA_VISIBLE_DEVICES, and CUDA may number them
// otherwise (CUDA_DEVICE_ORDER). Of one cut up by MIG it is the whole, which tells no utilisation.
// Energy is the driver's counter; of a GPU without one, the power integrated between samples.
// Not thread-safe.
class GpuMonitor {
 public:
  // Opens the library, a file name or a path, when it is there. Its first reading is made here.
  // Unavailable, with the reason: no library, a library without what is needed, no driver, no GPU.
  static absl::StatusOr<std::unique_ptr<GpuMonitor>> Open(absl::Duration now,
                                                          const std::string& library = "libnvidia-ml.so.1");
  ~GpuMonitor();

  const std::vector<GpuInfo>& gpus() const { return gpus_; }
  // One for each of gpus(). `now` is MonotonicNow(), not before that of the call before.
  std::vector<GpuSample> Sample(absl::Duration now);

 private:
  struct Library;
  struct Device;

  explicit GpuMonitor(std::unique_ptr<Library> library);
  void AddDevice(unsigned index, void* handle, absl::Duration now);
  std::optional<double> Energy(std::optional<double> power_watts, absl::Duration now, Device* device) const;

  const std::unique_ptr<Library> library_;
  std::vector<GpuInfo> gpus_;
  std::vector<Device> devices_;
};

// Over those that tell; nullopt if none does.
std::optional<double> MeanUtilization(const std::vector<GpuSample>& samples);

}  // namespace skein
