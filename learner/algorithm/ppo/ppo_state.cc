// SPDX-License-Identifier: Apache-2.0
#include <torch/types.h>
#include <torch/utils.h>
#include <xxhash.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "learner/algorithm/ppo/ppo.h"
#include "learner/optimize/across_ranks.h"

// What of Ppo goes into checkpoints, and between ranks.
namespace skein {
namespace {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// A copy on the CPU.
torch::Tensor Copy(const torch::Tensor& tensor) {
  return tensor.detach().to(torch::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

torch::Tensor Scalar(double value) { return torch::full({1}, value, torch::kFloat64); }

void AppendMoments(const std::string& name, const RunningMoments& moments, NamedTensors& state) {
  state.emplace_back(name + ".count", Scalar(moments.count()));
  state.emplace_back(name + ".mean", moments.mean().clone());
  state.emplace_back(name + ".variance", moments.variance().clone());
}

absl::Status CheckSameLayout(const NamedTensors& got, const NamedTensors& want, const std::string& where) {
  for (size_t i = 0; i < std::max(got.size(), want.size()); ++i) {
    if (i >= got.size()) return absl::InvalidArgumentError(absl::StrCat(where, ": ", want[i].first, " is missing"));
    if (i >= want.size()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", got[i].first, " is unknown to this run"));
    }
    if (got[i].first != want[i].first) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": got ", got[i].first, " where ", want[i].first,
                                                     " was expected; the network or environment differs"));
    }
    if (got[i].second.sizes() != want[i].second.sizes()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", got[i].first, " has shape [",
                                                     absl::StrJoin(got[i].second.sizes(), ", "), "], want [",
                                                     absl::StrJoin(want[i].second.sizes(), ", "), "]"));
    }
    if (got[i].second.scalar_type() != want[i].second.scalar_type()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", got[i].first, " has dtype ",
                                                     torch::toString(got[i].second.scalar_type()), ", want ",
                                                     torch::toString(want[i].second.scalar_type())));
    }
  }
  return absl::OkStatus();
}

}  // namespace

NamedTensors Ppo::ModelState() const {
  NamedTensors state;
  for (const auto& [name, parameter] : network_->AllParameters()) state.emplace_back(name, Copy(parameter));
  AppendMoments("obs_normalizer", obs_moments_, state);
  AppendMoments("return_normalizer", return_moments_, state);
  if (central_) AppendMoments("state_normalizer", state_moments_, state);
  return state;
}

NamedTensors Ppo::OptimizerState() const {
  return {{"adam.step", torch::full({1}, optimizer_.steps(), torch::kInt64)},
          {"adam.exp_avg", Copy(optimizer_.exp_avg())},
          {"adam.exp_avg_sq", Copy(optimizer_.exp_avg_sq())},
          {"lr", Scalar(lr_)}};
}

absl::Status Ppo::Restore(const NamedTensors& model, const NamedTensors& optimizer) {
  absl::Status status = CheckSameLayout(model, ModelState(), "model");
  if (status.ok()) status = CheckSameLayout(optimizer, OptimizerState(), "optimizer");
  if (!status.ok()) return status;

  const torch::NoGradGuard no_grad;
  const auto parameters = network_->AllParameters();
  for (size_t i = 0; i < parameters.size(); ++i) torch::Tensor(parameters[i].second).copy_(model[i].second);
  const auto restore_moments = [&](size_t first, RunningMoments& moments) {
    moments.Restore(model[first].second.item<double>(), model[first + 1].second, model[first + 2].second);
  };
  restore_moments(parameters.size(), obs_moments_);
  restore_moments(parameters.size() + 3, return_moments_);
  if (central_) restore_moments(parameters.size() + 6, state_moments_);
  optimizer_.Restore(optimizer[0].second.item<int64_t>(), optimizer[1].second, optimizer[2].second);
  lr_ = optimizer[3].second.item<double>();
  return absl::OkStatus();
}

absl::Status Ppo::Synchronize() {
  if (collective_ == nullptr) return absl::OkStatus();
  const NamedTensors model = ModelState(), optimizer = OptimizerState();
  for (const NamedTensors* state : {&model, &optimizer}) {
    for (const auto& [name, tensor] : *state) {
      if (absl::Status s = collective_->Broadcast(tensor); !s.ok()) return s;
    }
  }
  if (absl::Status s = Restore(model, optimizer); !s.ok()) return s;
  return CheckEqualDigests(collective_, ParametersDigest());
}

uint64_t Ppo::ParametersDigest() const {
  const torch::Tensor parameters = optimizer_.parameters().cpu();
  return XXH3_64bits(parameters.data_ptr(), parameters.nbytes());
}

}  // namespace skein
