// SPDX-License-Identifier: Apache-2.0
#include "learner/run/recorded_env.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <utility>

namespace skein {

RecordedEnv::RecordedEnv(std::unique_ptr<TensorEnv> env, torch::Device device,
                         std::unique_ptr<Recorder> advance_recorder, std::unique_ptr<Recorder> begin_recorder)
    : ForwardingEnv(std::move(env)),
      obs_(torch::empty({inner().worlds(), inner().spec().num_agents, inner().spec().obs_size},
                        torch::TensorOptions(torch::kFloat32).device(device))),
      advance_(
          std::move(advance_recorder),
          [this] {
            result_ = inner().Advance(action_);
            // They may be parts of the state, which BeginEpisodes changes.
            for (torch::Tensor& note : result_.notes) note = note.clone();
          },
          [this] { return inner().Tensors(); }),
      begin_(
          std::move(begin_recorder),
          [this] {
            inner().BeginEpisodes();
            inner().Observe(obs_);
          },
          [this] { return inner().Tensors(); }) {}

void RecordedEnv::BeginAll(int64_t episode) {
  observed_ = false;
  inner().BeginAll(episode);
}

absl::Status RecordedEnv::LoadState(const torch::Tensor& state) {
  observed_ = false;
  return inner().LoadState(state);
}

TensorEnv::StepResult RecordedEnv::Advance(const torch::Tensor& action) {
  const torch::NoGradGuard no_grad;
  if (!action_.defined()) action_ = torch::empty_like(action, torch::MemoryFormat::Contiguous);
  action_.copy_(action.view_as(action_));
  observed_ = false;
  advance_.Run();
  return result_;
}

void RecordedEnv::BeginEpisodes() {
  begin_.Run();
  observed_ = true;
}

bool RecordedEnv::EndRollout() {
  const bool ended = inner().EndRollout();
  // A repetition makes all maps in each step, and more of them are made afterwards: other work than was recorded.
  if (!ended || repeating_) {
    advance_.Forget();
    begin_.Forget();
    observed_ = false;
  }
  repeating_ = !ended;
  return ended;
}

void RecordedEnv::WriteObs(torch::Tensor obs, const torch::Tensor& envs) const {
  if (observed_ && !envs.defined()) {
    obs.copy_(obs_);
  } else {
    inner().Observe(std::move(obs), envs);
  }
}

std::unique_ptr<TensorEnv> RecordOnGpu(std::unique_ptr<TensorEnv> env, torch::Device device) {
  if (!device.is_cuda()) return env;
  return std::make_unique<RecordedEnv>(std::move(env), device, MakeCudaRecorder(device), MakeCudaRecorder(device));
}

}  // namespace skein
