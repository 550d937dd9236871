// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "env/tensor/forwarding_env.h"
#include "env/tensor/tensor_env.h"
#include "learner/optimize/recorded_step.h"
#include "learner/optimize/step_graph.h"

namespace skein {

// A TensorEnv whose steps are recorded and replayed: on a GPU starting a step's hundreds of small kernels one by one
// takes longer than running them.   action -> Advance -> BeginEpisodes -> Observe, all from one environment
// Differs from other TensorEnvs in one thing: Advance writes each result where it wrote the one before. Not
// thread-safe. Torch's exceptions are not caught, but those of a recording.
class RecordedEnv final : public ForwardingEnv {
 public:
  // Two recordings of each environment. REQUIRES: recorders on the device of `env`.
  RecordedEnv(std::unique_ptr<TensorEnv> env, torch::Device device, std::unique_ptr<Recorder> advance_recorder,
              std::unique_ptr<Recorder> begin_recorder);

  void BeginAll(int64_t episode) override;
  StepResult Advance(const torch::Tensor& action) override;
  void BeginEpisodes() override;
  absl::Status LoadState(const torch::Tensor& state) override;
  bool EndRollout() override;

 private:
  void WriteObs(torch::Tensor obs, const torch::Tensor& envs) const override;

  torch::Tensor action_, obs_;  // Of all environments; advance_ reads the one, begin_ writes the other.
  bool observed_ = false;       // obs_ holds the current observations.
  bool repeating_ = false;      // A rollout is being repeated.
  StepResult result_;
  RecordedStep advance_, begin_;
};

// `env` itself, or on a GPU its steps recorded.
std::unique_ptr<TensorEnv> RecordOnGpu(std::unique_ptr<TensorEnv> env, torch::Device device);

}  // namespace skein
