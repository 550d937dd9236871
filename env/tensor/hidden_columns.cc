// SPDX-License-Identifier: Apache-2.0
#include "env/tensor/hidden_columns.h"

#include <torch/types.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "env/tensor/forwarding_env.h"
#include "env/transform/transform.h"

namespace skein {
namespace {

class HiddenColumns final : public ForwardingEnv {
 public:
  HiddenColumns(EnvSpec spec, torch::Tensor kept, torch::Tensor shown, std::unique_ptr<TensorEnv> env)
      : ForwardingEnv(std::move(env)), spec_(std::move(spec)), kept_(std::move(kept)), shown_(std::move(shown)) {}

  const EnvSpec& spec() const override { return spec_; }

 private:
  void WriteObs(torch::Tensor obs, const torch::Tensor& envs) const override {
    torch::index_select_out(obs, ObserveInner(obs, envs), 2, kept_);
  }
  void WriteState(torch::Tensor state, const torch::Tensor& envs) const override {
    if (shown_.numel() == 0) {
      inner().GlobalState(std::move(state), envs);
      return;
    }
    const int64_t count = state.size(0), size = inner().spec().global_state_size;
    if (size > 0) {
      const torch::Tensor own = torch::empty({count, size}, state.options());
      inner().GlobalState(own, envs);
      state.narrow(1, 0, size).copy_(own);
    }
    const torch::Tensor shown = ObserveInner(state, envs).index_select(2, shown_);
    state.narrow(1, size, state.size(1) - size).copy_(shown.view({count, -1}));
  }

  // [K, A, O] of the environment inside, where `like` is [K, ...].
  torch::Tensor ObserveInner(const torch::Tensor& like, const torch::Tensor& envs) const {
    torch::Tensor whole = torch::empty({like.size(0), spec_.num_agents, inner().spec().obs_size}, like.options());
    inner().Observe(whole, envs);
    return whole;
  }

  const EnvSpec spec_;
  const torch::Tensor kept_, shown_;  // int64, on the device.
};

}  // namespace

absl::StatusOr<std::unique_ptr<TensorEnv>> HideColumns(const TransformOptions& hide, torch::Device device,
                                                       std::unique_ptr<TensorEnv> env) {
  auto resolved = ResolveTransforms(env->spec(), {hide});
  if (!resolved.ok()) return resolved.status();
  Transform& transform = resolved->front();
  const auto columns = [device](const std::vector<int>& of) {
    return torch::tensor(std::vector<int64_t>(of.begin(), of.end()), torch::kInt64).to(device);
  };
  return std::make_unique<HiddenColumns>(std::move(transform.outer), columns(transform.kept), columns(transform.shown),
                                         std::move(env));
}

}  // namespace skein
