// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <memory>
#include <utility>
#include <vector>

#include "env/tensor/tensor_env.h"

namespace skein {

// A TensorEnv around another one, which does everything that a derived class does not do otherwise.
class ForwardingEnv : public TensorEnv {
 public:
  explicit ForwardingEnv(std::unique_ptr<TensorEnv> env) : env_(std::move(env)) {}

  const EnvSpec& spec() const override { return env_->spec(); }
  int64_t worlds() const override { return env_->worlds(); }
  int64_t state_size() const override { return env_->state_size(); }
  void BeginAll(int64_t episode) override { env_->BeginAll(episode); }
  StepResult Advance(const torch::Tensor& action) override { return env_->Advance(action); }
  void BeginEpisodes() override { env_->BeginEpisodes(); }
  torch::Tensor SaveState() const override { return env_->SaveState(); }
  absl::Status LoadState(const torch::Tensor& state) override { return env_->LoadState(state); }
  std::vector<int64_t> Steps() const override { return env_->Steps(); }
  std::vector<torch::Tensor*> Tensors() override { return env_->Tensors(); }
  void BeginRollout() override { env_->BeginRollout(); }
  bool EndRollout() override { return env_->EndRollout(); }
  void FinishMetrics(uint64_t env_index, const std::vector<torch::Tensor>& notes, float* metrics) const override {
    env_->FinishMetrics(env_index, notes, metrics);
  }

 protected:
  TensorEnv& inner() { return *env_; }
  const TensorEnv& inner() const { return *env_; }

 private:
  void WriteObs(torch::Tensor obs, const torch::Tensor& envs) const override { env_->Observe(std::move(obs), envs); }
  void WriteState(torch::Tensor state, const torch::Tensor& envs) const override {
    env_->GlobalState(std::move(state), envs);
  }

  const std::unique_ptr<TensorEnv> env_;
};

}  // namespace skein
