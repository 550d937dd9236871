// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/number/philox.h"
#include "env/env.h"
#include "env/env_options.h"

namespace skein {

// E environments stepped as tensors on one device: the tensor counterpart of VectorEnv. For the same (seed, env index,
// episode, actions) outcomes are the same and numbers are equal up to rounding.
//   BeginAll -> { Observe, Advance, BeginEpisodes } repeatedly
// No step waits for the device, unless that is the CPU. Not thread-safe. Torch's exceptions are not caught.
class TensorEnv {
 public:
  struct Options {
    int64_t worlds = 1;  // E
    int64_t copies = 1;  // E / copies environments, each of which is there so many times: all of them, then all again.
    uint64_t seed = 1;
    uint64_t first_env = 0;  // Run-wide index of the first environment.
    RandomPurpose reset_purpose = RandomPurpose::kEnvReset;
    int max_episode_steps = 0;  // 0 = the environment's own limit.
    torch::Device device = torch::kCPU;
  };
  // The result of one step, as VectorEnv::StepResult. All tensors are on the device and are not modified later.
  struct StepResult {
    torch::Tensor reward;            // float32 [E, A]
    torch::Tensor terminated;        // bool [E]
    torch::Tensor truncated;         // bool [E]
    torch::Tensor active;            // bool [E, A], the alive mask of the step
    torch::Tensor agent_terminated;  // bool [E, A]
    torch::Tensor ended;            // bool [E], terminated or truncated. Where it is not set, the fields below describe
                                    // the episode so far.
    torch::Tensor episode_return;   // float64 [E]
    torch::Tensor episode_length;   // int64 [E]
    torch::Tensor episode_metrics;  // float32 [E, P]; see FinishMetrics
    std::vector<torch::Tensor> notes;  // [E, ...] each: input of FinishMetrics. The same number in every step.
    // Set by Step only: the end of the episode, before the next one begins.
    torch::Tensor final_obs;    // float32 [E, A, O]
    torch::Tensor final_state;  // float32 [E, G]
  };

  virtual ~TensorEnv() = default;

  virtual const EnvSpec& spec() const = 0;  // max_episode_steps is the limit in force.
  virtual int64_t worlds() const = 0;
  // Doubles for each environment in SaveState; rows have VectorEnv's format.
  virtual int64_t state_size() const = 0;

  // Begins this episode, under 2^32, of all environments. All other methods need this or LoadState first.
  virtual void BeginAll(int64_t episode) = 0;
  void ResetAll() { BeginAll(0); }
  // action: int64 [E, A] choices or float32 [E, A, D], on the device; brought into range as VectorEnv does.
  // Environments whose episode ended keep their final state until BeginEpisodes, which must come before the next step;
  // Observe and GlobalState return the final state until then. Without it, what later steps say of these environments
  // means nothing, and nothing of the others changes.
  virtual StepResult Advance(const torch::Tensor& action) = 0;
  virtual void BeginEpisodes() = 0;
  // Advance, then BeginEpisodes; in between it observes final_obs and final_state.
  StepResult Step(const torch::Tensor& action);

  // Write float32 [E, A, O] and [E, G], contiguous. With int64 [K] `envs`: of these environments, [K, A, O] and [K, G].
  void Observe(torch::Tensor obs, const torch::Tensor& envs = {}) const { WriteObs(std::move(obs), envs); }
  void GlobalState(torch::Tensor state, const torch::Tensor& envs = {}) const { WriteState(std::move(state), envs); }

  // Waits for the device. float64 [E, S] on the CPU, rows as VectorEnv::SaveState writes them.
  virtual torch::Tensor SaveState() const = 0;
  // InvalidArgument: as VectorEnv::LoadState; nothing has changed.
  virtual absl::Status LoadState(const torch::Tensor& state) = 0;
  // Steps done in the current episodes, on the CPU. Waits for the device.
  virtual std::vector<int64_t> Steps() const = 0;

  // The addresses of all tensors that one step leaves to the next, always in the same order; no two share memory. The
  // caller may put others with the same values in their place; the call drops results that were kept of the old ones.
  // All other tensors that a step reads are the same ones for the environment's life.
  virtual std::vector<torch::Tensor*> Tensors() = 0;

  // Called before and after the steps of one rollout. An environment that prepares next episodes in advance may have
  // prepared too few. EndRollout then returns false and restores the state at BeginRollout; the same steps taken again
  // give correct results. EndRollout may wait for the device.
  virtual void BeginRollout() {}
  virtual bool EndRollout() { return true; }

  // Computes those metrics of a finished episode that a device cannot compute. notes: the row of environment
  // `env_index` (run-wide) in each of StepResult::notes, on the CPU, of the step in which the episode ended; metrics
  // [P].
  virtual void FinishMetrics(uint64_t env_index, const std::vector<torch::Tensor>& notes, float* metrics) const {
    (void)env_index, (void)notes, (void)metrics;
  }

 protected:
  // InvalidArgument: worlds < 1, copies do not divide it, max_episode_steps < 0, or indices beyond 2^32.
  static absl::Status CheckOptions(const Options& options);
  // InvalidArgument: `state` is not float64 [E, S], a number is not finite, or bookkeeping is out of range.
  absl::Status CheckRows(const torch::Tensor& state) const;

 private:
  virtual void WriteObs(torch::Tensor obs, const torch::Tensor& envs) const = 0;
  virtual void WriteState(torch::Tensor state, const torch::Tensor& envs) const = 0;
};

// The tensor form of a registered environment. InvalidArgument: as CheckTensorForm (env/registry.h), the environment
// refuses `env_options`, a transform does not fit or is another one than kHide, worlds < 1, max_episode_steps < 0, or
// indices beyond 2^32.
absl::StatusOr<std::unique_ptr<TensorEnv>> MakeTensorEnv(const std::string& env_id, const TensorEnv::Options& options,
                                                         const EnvOptions& env_options);

}  // namespace skein
