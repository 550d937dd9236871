// SPDX-License-Identifier: Apache-2.0
#include "bench/torch_forward.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "learner/network/policy_snapshot.h"

namespace skein {

struct TorchForward::Impl {
  Impl(const v1::RunConfig& config, const EnvSpec& spec)
      : network(MakeActorCriticOptions(config.model(), spec), config.seed()),
        mean(torch::zeros({spec.obs_size})),
        inv_std(torch::ones({spec.obs_size})) {}
  ActorCritic network;
  torch::Tensor mean, inv_std;
};

TorchForward::TorchForward(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TorchForward::~TorchForward() = default;

absl::StatusOr<std::unique_ptr<TorchForward>> TorchForward::Make(const v1::RunConfig& config, const EnvSpec& spec) {
  if (config.model().memory() != v1::MEMORY_NONE) {
    return absl::InvalidArgumentError("model.memory: want none, LibTorch's forward pass has no memory here");
  }
  try {
    return std::unique_ptr<TorchForward>(new TorchForward(std::make_unique<Impl>(config, spec)));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Torch failed while making a network: ", error.what()));
  }
}

v1::PolicySnapshot TorchForward::Snapshot() const {
  return MakeSnapshot(1, impl_->network, {impl_->mean, impl_->inv_std});
}

void TorchForward::Act(const float* obs, int64_t rows, float* head) const {
  at::set_num_threads(1);
  const c10::InferenceMode no_gradients;
  const int64_t size = impl_->mean.size(0);
  const torch::Tensor in = torch::from_blob(const_cast<float*>(obs), {rows, size}, torch::kFloat32);
  const torch::Tensor out = impl_->network.PolicyHead(((in - impl_->mean) * impl_->inv_std).clamp_(-10, 10));
  std::copy_n(out.data_ptr<float>(), out.numel(), head);
}

}  // namespace skein
