// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/bench/measure_rate.h"
#include "env/env.h"
#include "env/vector_env.h"
#include "skein/v1/config.pb.h"

// Environments stepped with ready-made random actions and nothing else.
namespace skein {

// [rows, width] random actions within the bounds of `spec`; `width` is a multiple of the floats of one agent's action.
std::vector<float> RandomActions(const EnvSpec& spec, int64_t rows, int64_t width, uint64_t seed);

// The physical limit of a configuration: the bare physics of its environment on some threads, one simulation each.
class EnvLimit {
 public:
  // Errors as MakeEnv.
  static absl::StatusOr<std::unique_ptr<EnvLimit>> Make(const v1::RunConfig& config, uint32_t threads);
  // What is stepped: "mj_step" (setting controls, mj_step x frame skip, reset at the time limit), or "Env::Step" where
  // the environment is not one of MuJoCo's.
  const std::string& what() const { return what_; }
  // Env steps per second. Simulations go on where they were.
  double Measure(absl::Duration duration) { return MeasureRate(jobs_, duration); }

 private:
  EnvLimit() = default;
  std::string what_;
  std::vector<float> actions_;
  std::vector<Job> jobs_;
};

// Our vector environments, one of rollout.envs_per_runner environments on each thread.
class VectorEnvLoops {
 public:
  // Errors as VectorEnv::Make.
  static absl::StatusOr<std::unique_ptr<VectorEnvLoops>> Make(const v1::RunConfig& config, uint32_t threads);
  // Env steps per second. Episodes go on where they were.
  double Measure(absl::Duration duration) { return MeasureRate(jobs_, duration); }

 private:
  VectorEnvLoops() = default;
  std::vector<float> actions_;
  std::vector<Job> jobs_;
};

}  // namespace skein
