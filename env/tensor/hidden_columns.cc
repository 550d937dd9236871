// SPDX-License-Identifier: Apache-2.0
#include "env/tensor/hidden_columns.h"

#include <torch/types.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "env/transform/transform.h"

namespace skein {
namespace {

class HiddenColumns final : public TensorEnv {
 public:
  HiddenColumns(EnvSpec spec, torch::Tensor kept, std::unique_ptr<TensorEnv> env)
      : spec_(std::move(spec)), kept_(std::move(kept)), env_(std::move(env)) {}

  const EnvSpec& spec() const override { return spec_; }
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

 private:
  void WriteObs(torch::Tensor obs, const torch::Tensor& envs) const override {
    const torch::Tensor whole = torch::empty({obs.size(0), obs.size(1), env_->spec().obs_size}, obs.options());
    env_->Observe(whole, envs);
    torch::index_select_out(obs, whole, 2, kept_);
  }
  void WriteState(torch::Tensor state, const torch::Tensor& envs) const override {
    env_->GlobalState(std::move(state), envs);
  }

  const EnvSpec spec_;
  const torch::Tensor kept_;  // int64, on the device.
  const std::unique_ptr<TensorEnv> env_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorEnv>> HideColumns(const TransformOptions& hide, torch::Device device,
                                                       std::unique_ptr<TensorEnv> env) {
  auto resolved = ResolveTransforms(env->spec(), {hide});
  if (!resolved.ok()) return resolved.status();
  Transform& transform = resolved->front();
  const std::vector<int64_t> kept(transform.kept.begin(), transform.kept.end());
  return std::make_unique<HiddenColumns>(std::move(transform.outer), torch::tensor(kept, torch::kInt64).to(device),
                                         std::move(env));
}

}  // namespace skein
