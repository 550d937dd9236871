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
  HiddenColumns(EnvSpec spec, torch::Tensor kept, std::unique_ptr<TensorEnv> env)
      : ForwardingEnv(std::move(env)), spec_(std::move(spec)), kept_(std::move(kept)) {}

  const EnvSpec& spec() const override { return spec_; }

 private:
  void WriteObs(torch::Tensor obs, const torch::Tensor& envs) const override {
    const torch::Tensor whole = torch::empty({obs.size(0), obs.size(1), inner().spec().obs_size}, obs.options());
    inner().Observe(whole, envs);
    torch::index_select_out(obs, whole, 2, kept_);
  }

  const EnvSpec spec_;
  const torch::Tensor kept_;  // int64, on the device.
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
