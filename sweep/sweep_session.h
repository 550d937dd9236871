// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace skein {

// The flags of `skein sweep`.
struct SweepOptions {
  std::string env_id;
  std::string config_path;
  std::string space_path;
  std::vector<std::string> overrides;
  uint64_t steps = 0;  // total_steps; 0 = the configuration's.
  std::string name;
  std::string runs_dir = "runs";
  std::string resume = "auto";
  std::string slots = "auto";
  std::string device;
  std::string launcher = "auto";  // Words before each training's command; none, or auto = srun in a Slurm job.
  std::string metrics_listen;     // Address of /metrics and the page; empty = none.
  std::string program_folder;
};

// Runs a sweep: base configuration, space -> search -> test -> report. Handles SIGINT and SIGTERM; call it before any
// other thread is started. `json`: set to the result as JSON text, unless nullptr. Returns the exit code.
int RunSweep(const SweepOptions& options, std::string* json);

}  // namespace skein
