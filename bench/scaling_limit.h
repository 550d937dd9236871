// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "bench/scaling_result.h"
#include "bench/scaling_training.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Finds the physical limit of an environment: the rate of the bare loop with as many threads as a configuration has
// runners, but at most one per core. Measured with `skein-bench env`, once for each number of threads. Computed for
// Latency-v0, whose steps take time but no core.
class LimitFinder {
 public:
  LimitFinder(std::string program_folder, const v1::RunConfig& config, uint32_t cores)
      : program_folder_(std::move(program_folder)), config_(config), cores_(cores) {}

  // `folder` is for temporary files. A limit that cannot be found carries the reason instead.
  PhysicalLimit Find(const ScalingPoint& point, const std::string& folder, const StopRequested& stop);

 private:
  PhysicalLimit Measure(uint32_t threads, const std::string& folder, const StopRequested& stop) const;

  const std::string program_folder_;
  const v1::RunConfig config_;
  const uint32_t cores_;
  std::map<uint32_t, PhysicalLimit> by_threads_;
};

// The limit of r runners that sleep step_ms per step, one environment after the other: r / step_ms, independent of the
// number of environments of each.
PhysicalLimit LatencyLimit(const v1::LatencyConfig& latency, const ScalingPoint& point);

}  // namespace skein
