// SPDX-License-Identifier: Apache-2.0
#include "bench/torch_forward.h"

#include <torch/nn/modules/rnn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "learner/network/policy_snapshot.h"

namespace skein {
namespace {

template <typename Cell>
Cell WithWeightsOf(const MemoryCell& memory) {
  const torch::NoGradGuard no_grad;
  Cell cell(memory.weight_ih.size(1), memory.size());
  cell->weight_ih.copy_(memory.weight_ih);
  cell->weight_hh.copy_(memory.weight_hh);
  cell->bias_ih.copy_(memory.bias_ih);
  cell->bias_hh.copy_(memory.bias_hh);
  return cell;
}

}  // namespace

struct TorchForward::Impl {
  Impl(const v1::RunConfig& config, const EnvSpec& spec)
      : network(MakeActorCriticOptions(config.model(), spec), config.seed()),
        mean(torch::zeros({spec.obs_size})),
        inv_std(torch::ones({spec.obs_size})) {
    const MemoryCell& memory = network.memory();
    if (memory.kind == MemoryKind::kGru) gru = WithWeightsOf<torch::nn::GRUCell>(memory);
    if (memory.kind == MemoryKind::kLstm) lstm = WithWeightsOf<torch::nn::LSTMCell>(memory);
  }

  // What the policy reads of one step's observations: h after it, where there is a memory.
  torch::Tensor Remember(const torch::Tensor& obs) {
    if (gru.is_empty() && lstm.is_empty()) return obs;
    if (!h.defined() || h.size(0) != obs.size(0)) {
      h = torch::zeros({obs.size(0), network.memory().size()});
      c = torch::zeros_like(h);
    }
    if (lstm.is_empty()) {
      h = gru->forward(obs, h);
    } else {
      std::tie(h, c) = lstm->forward(obs, std::make_tuple(h, c));
    }
    return h;
  }

  ActorCritic network;
  torch::Tensor mean, inv_std;
  torch::nn::GRUCell gru{nullptr};
  torch::nn::LSTMCell lstm{nullptr};
  torch::Tensor h, c;  // After the last call, [rows, H]; undefined: none yet.
};

TorchForward::TorchForward(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TorchForward::~TorchForward() = default;

absl::StatusOr<std::unique_ptr<TorchForward>> TorchForward::Make(const v1::RunConfig& config, const EnvSpec& spec) {
  try {
    return std::unique_ptr<TorchForward>(new TorchForward(std::make_unique<Impl>(config, spec)));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Torch failed while making a network: ", error.what()));
  }
}

v1::PolicySnapshot TorchForward::Snapshot() const {
  return MakeSnapshot(1, impl_->network, {impl_->mean, impl_->inv_std});
}

void TorchForward::Act(const float* obs, int64_t rows, float* head) {
  at::set_num_threads(1);
  const c10::InferenceMode no_gradients;
  const int64_t size = impl_->mean.size(0);
  const torch::Tensor in = torch::from_blob(const_cast<float*>(obs), {rows, size}, torch::kFloat32);
  const torch::Tensor seen = impl_->Remember(((in - impl_->mean) * impl_->inv_std).clamp_(-10, 10));
  const torch::Tensor out = impl_->network.PolicyHead(seen);
  std::copy_n(out.data_ptr<float>(), out.numel(), head);
}

}  // namespace skein
