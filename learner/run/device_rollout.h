// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "env/tensor/tensor_env.h"
#include "env/tensor/tensor_philox.h"
#include "learner/network/actor_critic.h"
#include "learner/network/normalizer.h"
#include "learner/optimize/batch.h"
#include "skein/v1/config.pb.h"
#include "skein/v1/trajectory.pb.h"

namespace skein {

// Steps environments on the learner's device with the newest policy, without actors (mode on_device).
//   TensorEnv -> policy -> sample -> TensorEnv, T times -> Batch -> Algorithm::Update
// Actions are sampled from the random streams (seed, kAction, env index, iteration), in order of the T steps, so a run
// with the same seed on the same kind of device is reproducible from any iteration. Not thread-safe. Torch's exceptions
// are not caught.
class DeviceRollout {
 public:
  // The networks for actions and values, with their input scales; scales may be on the CPU.
  struct Judge {
    const ActorCritic* network;
    ObsScale obs_scale;
    ObsScale state_scale;  // Of the global state, if the critic is central.
  };
  struct Iteration {
    Batch batch;          // On the device; valid until the next Collect. Has final_value.
    int64_t samples = 0;  // Agent steps whose alive flag is set.
    // Of episodes that ended, in order of step, then environment.
    std::vector<double> episode_return;
    std::vector<int64_t> episode_length;
    std::vector<float> episode_metrics;  // [episodes, P]; the last kFinished are complete (TensorEnv::FinishMetrics).
    // Measured on the host. The device works asynchronously; the wait for it at the end counts as `wait`.
    v1::StageSeconds stage_seconds;
  };
  static constexpr int64_t kFinished = 100;

  // Environments first_env .. first_env + share_envs - 1 of the run. Errors as MakeTensorEnv.
  // Unimplemented: the algorithm reads a field that is not made here.
  // REQUIRES: defaults applied to `config` and validated.
  static absl::StatusOr<std::unique_ptr<DeviceRollout>> Make(const v1::RunConfig& config, uint32_t first_env,
                                                             uint32_t share_envs, torch::Device device);

  // Begins episode 0 in all environments.
  void Begin();
  // Continues from `state`, float64 [N, S], and `policy_state`, float32 [N, A, S]; undefined: zeros. Errors as
  // TensorEnv::LoadState. InvalidArgument: policy_state has another shape.
  absl::Status Begin(const torch::Tensor& state, const torch::Tensor& policy_state = {});
  torch::Tensor SaveState() const { return env_->SaveState(); }
  // float32 [N, A, S]; undefined: the policy has no memory.
  torch::Tensor SavePolicyState() const;

  // Makes the next steps_per_iteration / num_envs steps. `iteration` < 2^32 selects the noise.
  Iteration Collect(const Judge& judge, uint64_t iteration);

  int64_t share_envs() const { return E_; }
  TensorEnv& env() { return *env_; }

 private:
  // Data of episodes that ended in each step, [T, E, ...].
  struct Episodes {
    torch::Tensor ended, episode_return, episode_length, metrics;
    std::vector<torch::Tensor> notes;  // StepResult::notes of each step; allocated at the first step.
  };
  // What the networks remember, [M, S]; undefined: they have no memory of that kind.
  struct Memories {
    torch::Tensor policy, critic;
  };
  // Environments that may be truncated in a step, computed on the host before the first step.
  struct Candidates {
    bool all = false;
    torch::Tensor envs;  // int64 on the device, unless all.
    int64_t count = 0;
  };

  DeviceRollout(const v1::RunConfig& config, std::unique_ptr<TensorEnv> env, uint32_t first_env, int64_t steps,
                torch::Device device);
  std::vector<Candidates> FindCandidates() const;
  void Roll(const Judge& judge, uint64_t iteration, v1::StageSeconds* seconds);
  void Observe(int64_t t);
  // Numbers in (0, 1) for `steps` steps from `first` on, float32 [steps, E * words of a step].
  torch::Tensor Noise(uint64_t iteration, int64_t first, int64_t steps) const;
  // Writes row t of actions and log-probabilities. noise [E * words].
  void Sample(int64_t t, const torch::Tensor& head, const torch::Tensor& log_std, const torch::Tensor& noise);
  // Input of the policy's head in step t. Moves the memories on by that step.
  torch::Tensor Remember(const Judge& judge, int64_t t, Memories* memories) const;
  // Writes the values of the current observations of `candidates` to row t of final_value.
  void JudgeEnds(const Judge& judge, const Candidates& candidates, const Memories& memories, int64_t t);
  void KeepNotes(int64_t t, const std::vector<torch::Tensor>& notes);
  void ReadEpisodes(Iteration* iteration);

  const uint64_t seed_;
  const uint32_t first_env_;
  const int64_t E_, A_, T_;  // Environments, agents, steps.
  const int64_t words_;      // Of noise for each agent in a step.
  const bool central_;
  const torch::Device device_;
  const std::unique_ptr<TensorEnv> env_;
  const TensorPhilox philox_;
  torch::Tensor env_index_;   // int64 [E]
  const int64_t state_size_;  // S; 0: the policy has no memory.
  // [M, S], before the first step of the next iteration, and of what the last Roll led to.
  torch::Tensor policy_state_, rolled_state_;
  Batch batch_;
  Episodes episodes_;
};

}  // namespace skein
