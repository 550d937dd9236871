// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

// Reads what NVIDIA GPUs report of themselves, for metrics and the status page.   NVML -> GpuSample
namespace skein {

struct GpuInfo {
  unsigned index = 0;  // NVML's index: in the order of PCI buses.
  std::string name;    // E.g. "NVIDIA H200"; empty = the driver does not report it.
  std::string uuid;    // "GPU-..."; likewise.
};

// A sample of one GPU. Nullopt: the driver does not report the value, at this time or at all.
struct GpuSample {
  std::optional<double> utilization_ratio;  // Share of the last moments, up to a second, in which a kernel ran, 0-1.
  std::optional<uint64_t> memory_used_bytes;
  std::optional<uint64_t> memory_total_bytes;
  std::optional<double> power_watts;
  std::optional<double> energy_joules;  // Used since the monitor was opened. Never falls.
  std::optional<double> temperature_celsius;
};

// Samples utilisation, memory and power of this machine's NVIDIA GPUs.   driver's NVML library -> GpuSample
// It covers all GPUs of the node or container: NVML ignores CUDA_VISIBLE_DEVICES, and CUDA may number GPUs
// differently (CUDA_DEVICE_ORDER). A GPU divided by MIG is sampled as a whole, without utilisation.
// Energy is the driver's counter or, for a GPU without one, the power integrated between samples.
// Not thread-safe.
class GpuMonitor {
 public:
  // Opens the library (file name or path) and takes the first reading.
  // Unavailable, with the reason: no library, the library lacks functions, no driver, no GPU.
  static absl::StatusOr<std::unique_ptr<GpuMonitor>> Open(absl::Duration now,
                                                          const std::string& library = "libnvidia-ml.so.1");
  ~GpuMonitor();

  const std::vector<GpuInfo>& gpus() const { return gpus_; }
  // One sample for each of gpus(). `now` is MonotonicNow() and never decreases between calls.
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

// Mean over the GPUs that report utilisation; nullopt if none does.
std::optional<double> MeanUtilization(const std::vector<GpuSample>& samples);

}  // namespace skein
