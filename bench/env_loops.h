// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/measure_rate.h"
#include "env/env.h"
#include "env/external/external_options.h"
#include "env/mujoco/bare_loop.h"
#include "env/vector_env.h"
#include "skein/v1/config.pb.h"

// Steps environments with precomputed actions and does nothing else.
namespace skein {

// [rows, width] random actions within the bounds of `spec`. REQUIRES: `width` is a multiple of the floats of one
// agent's action.
std::vector<float> RandomActions(const EnvSpec& spec, int64_t rows, int64_t width, uint64_t seed);

// In place, what the environment itself gets of actions [rows, width] of the policy, one agent's in a row. Errors as
// FindTransforms. REQUIRES: width > 0 divides the size.
absl::Status TransformActions(const VectorEnv::Options& options, int64_t width, std::vector<float>* actions);

// Rows [first, first + count) of the `rows` actions of a thread, with which the limit plays simulation `index` of those
// of `size` environments, at most 16. A VectorEnv's environment begins with the same row.
struct SimulationRows {
  int64_t first, count;
};
SimulationRows RowsOfSimulation(int64_t index, int64_t size, int64_t rows);

// Steps of one thread since the last measurement began.
struct StepTally {
  int64_t env_steps = 0;
  int64_t agent_steps = 0;  // Of agents whose alive flag is set.
  absl::Status failure;     // Of the environments; no more steps are taken then.
};

struct StepRates {
  double env_steps_per_second, agent_steps_per_second;
};

// Measures the physical limit of a configuration: the bare physics of its environment on several threads. Of
// environments in a server of their own (python:, exec:) the limit is the loop that its language's users would write,
// in the server, over as many of them.
class EnvLimit {
 public:
  // Random actions. Of MuJoCo environments each thread plays the episodes of those that VectorEnvLoops has on it, at
  // most 16: 16 steps of one, then 16 of the next. What a step costs depends on where a body lies, so that the episodes
  // of one environment are no measure of all. Others have one on each thread. Errors as MakeEnv.
  static absl::StatusOr<std::unique_ptr<EnvLimit>> Make(const v1::RunConfig& config, uint32_t threads);
  // Bare mj_step with recorded actions in the episodes in which they were taken: thread i repeats episodes 0 ..
  // `episodes` - 1 of environment i with actions[i], [episodes x steps of an episode, D]. NotFound: not a MuJoCo
  // environment.
  static absl::StatusOr<std::unique_ptr<EnvLimit>> MakeReplay(const v1::RunConfig& config,
                                                              std::vector<std::vector<float>> actions,
                                                              uint64_t episodes);
  // What is stepped. "mj_step": set controls, mj_step x frame skip, reset where an episode ends. "its own loop" of a
  // server. "Env::Step" for others: no observations and no bookkeeping of VectorEnv.
  const std::string& what() const { return what_; }
  // Simulations continue from their current states. 0 after a failure.
  StepRates MeasureRates(absl::Duration duration);
  double Measure(absl::Duration duration) { return MeasureRates(duration).env_steps_per_second; }
  absl::Status failure() const;  // Of a server's environments.

 private:
  EnvLimit() = default;
  // Bare simulations that a thread steps in turn, each with `rows` actions of its own.
  struct Bare {
    std::shared_ptr<BareLoop> loop;
    const float* actions;  // [rows, D]
    int64_t rows;
  };
  // Of one thread. Errors as MakeEnv.
  static absl::StatusOr<std::vector<Bare>> MakeBareLoops(const v1::RunConfig& config, const float* actions,
                                                         uint32_t thread);
  void AddBareLoops(std::vector<Bare> loops);
  // Threads that have a server step by itself. Errors as OpenLocalWorld.
  absl::Status AddServers(const VectorEnv::Options& options, uint32_t threads);

  std::string what_;
  std::vector<std::vector<float>> actions_;
  std::vector<Job> jobs_;
  std::vector<std::unique_ptr<StepTally>> tallies_;  // One of each job.
};

// Measures VectorEnv, one with rollout.envs_per_runner environments on each thread.
class VectorEnvLoops {
 public:
  // Errors as VectorEnv::Make.
  static absl::StatusOr<std::unique_ptr<VectorEnvLoops>> Make(const v1::RunConfig& config, uint32_t threads);
  // Episodes continue from their current states. 0 after a failure.
  StepRates MeasureRates(absl::Duration duration);
  double Measure(absl::Duration duration) { return MeasureRates(duration).env_steps_per_second; }
  absl::Status failure() const;  // As VectorEnv::failure.

 private:
  VectorEnvLoops() = default;
  std::vector<float> actions_;
  std::vector<Job> jobs_;
  std::vector<std::unique_ptr<StepTally>> tallies_;  // One of each job.
};

}  // namespace skein
