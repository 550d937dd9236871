// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/process/resource_share.h"
#include "base/telemetry/gpu_monitor.h"
#include "prometheus/registry.h"

// Measures what this process and its node use.   /proc, GpuMonitor -> ResourceSample -> metrics
namespace skein {

struct ResourceSample {
  double cpu_ratio = 0;            // Busy share of all cores of the node since the previous sample, 0-1.
  std::vector<double> core_ratio;  // The same for each core.
  double process_cpu_seconds = 0;  // User + system, since the process started.
  uint64_t resident_bytes = 0;     // Of this process.
  uint64_t open_fds = 0;
  uint32_t threads = 0;
  uint64_t node_memory_total_bytes = 0;
  uint64_t node_memory_available_bytes = 0;
  std::vector<GpuSample> gpus;  // One for each GPU of the monitor; empty without a monitor.
};

// Reads /proc and the GPUs in a background thread every `period` and keeps the newest sample; exports it as metrics
// (process_*, skein_build_info, skein_node_gpu_*{gpu}; skein_node_cpu_utilization_ratio{core} and skein_node_memory_*
// after ExportNode()). Values that a GPU does not report are not exported; without a monitor (null) no GPU metrics are.
// Thread-safe.
class ResourceSampler {
 public:
  explicit ResourceSampler(prometheus::Registry* registry, absl::Duration period = absl::Milliseconds(500),
                           std::unique_ptr<GpuMonitor> gpus = nullptr);
  ~ResourceSampler();  // Stops and joins.
  // Sets the period from now on: the next sample is due one period from now. Zero and less are ignored.
  void SetPeriod(absl::Duration period);
  // From the next sample on, exports the metrics of the node as well, if no other process on the node does so for this
  // run. Once that one has ended, another one takes over at its next sample. A later call replaces the run.
  void ExportNode(const std::string& run_id);
  // Exports what this process has asked for of its machine, beside what it uses (skein_process_requested_*).
  void ExportShare(const ResourceShare& share);
  ResourceSample newest() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
