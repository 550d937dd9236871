// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "bench/scaling_result.h"
#include "bench/scaling_training.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Finds the physical limit of an environment: that of the bare loop with as many threads as a configuration has
// runners, but no more than cores. Measured with `skein-bench env`, once for each number of threads; computed for
// Latency-v0, whose steps take time and no core.
class LimitFinder {
 public:
  LimitFinder(std::string program_folder, const v1::RunConfig& config, uint32_t cores)
      : program_folder_(std::move(program_folder)), config_(config), cores_(cores) {}

  // `folder` is for files in between. A limit that cannot be found has the reason instead.
  PhysicalLimit Find(const ScalingPoint& point, const std::string& folder, const StopRequested& stop);

 private:
  PhysicalLimit Measure(uint32_t threads, const std::string& folder, const StopRequested& stop) const;

  const std::string program_folder_;
  const v1::RunConfig config_;
  const uint32_t cores_;
  std::map<uint32_t, PhysicalLimit> by_threads_;
};

// r runners that sleep step_ms a step, one environment after the other: r / step_ms, however many environments each
// has.
PhysicalLimit LatencyLimit(const v1::LatencyConfig& latency, const ScalingPoint& point);

}  // namespace skein
