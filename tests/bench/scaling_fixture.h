// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/str_cat.h"
#include "bench/scaling_result.h"

namespace skein {

// One measured configuration: iterations of `seconds` with 1,200 env steps each, CPU busy by `cpu` throughout. Runners
// step environments for 60 %, infer for 10 % and build for 5 % of the time; the learner updates for 20 %, publishes for
// 1 %, and waits for 78 %.
inline ScalingMeasurement SampleMeasurement(ScalingPoint point, std::vector<double> seconds, double cpu) {
  ScalingMeasurement row;
  row.point = point;
  row.steps_per_iteration = 1200;
  row.sizes = {absl::StrCat("rollout.num_envs=", point.environments()), "rollout.steps_per_iteration=1200"};
  row.times.env_steps = 1200 * seconds.size();
  row.times.seconds = std::move(seconds);
  const double wall = row.times.total_seconds();
  const double runner_time = wall * point.runners;
  row.times.runners = {{"env_step", 0.6 * runner_time},
                       {"inference", 0.1 * runner_time},
                       {"build", 0.05 * runner_time},
                       {"wait", 0.01 * runner_time}};
  row.times.learner = {{"receive", 0.001 * wall},
                       {"admit", 0.002 * wall},
                       {"barrier", 0.78 * wall},
                       {"update", 0.2 * wall},
                       {"publish", 0.01 * wall}};
  row.usage = {{.seconds = 0.5, .cpu = cpu, .cores = {cpu, cpu}}};
  return row;
}

// 1x1 takes 4 s, 2x1 2.5 s, 1x2 2 s, 2x2 1.6 s: speed-ups 1, 1.6, 2, 2.5.
inline ScalingResults SampleResults() {
  ScalingResults results;
  results.machine = {{"cpu", "A processor"},
                     {"cores", 2},
                     {"memory_bytes", uint64_t{4} << 30},
                     {"os", "An OS"},
                     {"compiler", "GCC 12"},
                     {"build_type", "Release"},
                     {"mujoco", "2.3.7"},
                     {"gpus", nlohmann::ordered_json::array()}};
  results.config = {{"env", "HalfCheetah-v5"},
                    {"configurations", {"1x1", "2x1", "1x2", "2x2"}},
                    {"iterations", 2},
                    {"warmup", 1},
                    {"seed", 20227128},
                    {"steps_per_iteration", 1200},
                    {"steps_per_env", nullptr},
                    {"actors", 1},
                    {"settings", nlohmann::ordered_json::array()},
                    {"run_config", "sync:\n  mode: on_policy\n"}};
  results.gpu_reason = "no NVIDIA driver (libnvidia-ml.so.1) on this machine";
  results.rows = {SampleMeasurement({1, 1}, {3.9, 4.1}, 0.5), SampleMeasurement({2, 1}, {2.5, 2.5}, 0.65),
                  SampleMeasurement({1, 2}, {2.0, 2.0}, 0.8), SampleMeasurement({2, 2}, {1.6, 1.6}, 0.9)};
  for (const char* name : {"1x1", "1x2"}) {
    results.limits[name] = {.env_steps_per_second = 1000, .how = "measured: the bare loop with 1 thread"};
  }
  results.limits["2x1"] = {.how = "skein bench env was stopped"};
  results.limits["2x2"] = {.env_steps_per_second = 2000, .how = "measured: the bare loop with 2 threads"};
  return results;
}

}  // namespace skein
