// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/actor_critic_algorithm.h"

#include <torch/types.h>
#include <torch/utils.h>
#include <xxhash.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/algorithm_rules.h"
#include "learner/network/policy_snapshot.h"
#include "learner/optimize/across_ranks.h"
#include "learner/optimize/state_layout.h"

namespace skein {
namespace {

// A copy on the CPU.
torch::Tensor Copy(const torch::Tensor& tensor) {
  return tensor.detach().to(torch::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

int64_t StateSize(const ActorCriticOptions& network) {
  const bool central = !network.shared_trunk && network.critic_input_size > 0;
  return central ? network.critic_input_size - network.obs_size : 0;
}

}  // namespace

std::shared_ptr<ActorCritic> MakeNetworks(const ActorCriticOptions& options, uint64_t seed, torch::Device device) {
  auto network = std::make_shared<ActorCritic>(options, seed);
  network->to(device);
  return network;
}

ActorCriticAlgorithm::ActorCriticAlgorithm(const v1::RunConfig& config, std::shared_ptr<ActorCritic> network,
                                           std::shared_ptr<const Loss> loss, double adam_epsilon, double max_grad_norm,
                                           double lr, Collective* collective, torch::Device device)
    : config_(config),
      collective_(collective),
      network_(std::move(network)),
      loss_(std::move(loss)),
      normalizers_(config.model(), network_->options().obs_size, StateSize(network_->options()), collective),
      steps_({config.learner(), adam_epsilon, max_grad_norm, config.sync().mode() == v1::SYNC_MODE_ON_DEVICE},
             *network_, *loss_, collective, device),
      lr_(lr) {}

absl::StatusOr<TrainingData> ActorCriticAlgorithm::Prepare(const Batch& batch, uint64_t iteration) {
  TrainingData data = PrepareData(batch, AlgorithmFields(config_), network_->options(), normalizers_, steps_.device(),
                                  steps_.prefetches() ? nullptr : &steps_.copier());
  const RowShare& share = data.share;
  if (share.total_size() == 0) return absl::FailedPreconditionError("the batch has no sample on any rank");
  if (absl::Status s = CheckShares(
          collective_, {share.steps, share.offset, share.columns, share.total, static_cast<int64_t>(iteration)});
      !s.ok()) {
    return s;
  }
  return data;
}

absl::StatusOr<UpdateStats> ActorCriticAlgorithm::Finish(const GradientSteps::Totals& totals) const {
  if (collective_ != nullptr) {
    if (absl::Status s = CheckEqualDigests(collective_, ParametersDigest()); !s.ok()) return s;
  }
  const double taken = static_cast<double>(std::max<int64_t>(1, totals.gradient_steps));
  UpdateStats stats;
  const std::vector<std::string> names = loss_->stats();
  for (size_t i = 0; i < names.size(); ++i) stats.Add(names[i], totals.loss.stats[i] / taken);
  stats.Add("grad_norm", totals.grad_norm / taken);
  stats.Add(UpdateStats::kGradientSteps, static_cast<double>(totals.gradient_steps));
  stats.Add(UpdateStats::kSkippedSteps, static_cast<double>(totals.skipped_steps));
  stats.Add(UpdateStats::kOutOfMemory, static_cast<double>(totals.out_of_memory));
  return stats;
}

v1::PolicySnapshot ActorCriticAlgorithm::Snapshot(uint64_t version) const {
  return MakeSnapshot(version, *network_, normalizers_.obs_scale(), config_.transport());
}

StateTensors ActorCriticAlgorithm::ModelState() const {
  StateTensors state;
  for (const auto& [name, parameter] : network_->AllParameters()) state.emplace_back(name, Copy(parameter));
  normalizers_.AppendTo(&state);
  return state;
}

StateTensors ActorCriticAlgorithm::OptimizerState() const {
  const FlatAdam& adam = steps_.adam();
  return {{"adam.step", torch::full({1}, adam.steps(), torch::kInt64)},
          {"adam.exp_avg", Copy(adam.exp_avg())},
          {"adam.exp_avg_sq", Copy(adam.exp_avg_sq())},
          {"lr", torch::full({1}, lr_, torch::kFloat64)}};
}

absl::Status ActorCriticAlgorithm::Restore(const StateTensors& model, const StateTensors& optimizer) {
  absl::Status status = CheckSameLayout(model, ModelState(), "model");
  if (status.ok()) status = CheckSameLayout(optimizer, OptimizerState(), "optimizer");
  if (!status.ok()) return status;

  const torch::NoGradGuard no_grad;
  const auto parameters = network_->AllParameters();
  for (size_t i = 0; i < parameters.size(); ++i) torch::Tensor(parameters[i].second).copy_(model[i].second);
  normalizers_.Restore(model, parameters.size());
  steps_.adam().Restore(optimizer[0].second.item<int64_t>(), optimizer[1].second, optimizer[2].second);
  lr_ = optimizer[3].second.item<double>();
  return absl::OkStatus();
}

absl::Status ActorCriticAlgorithm::Synchronize() {
  if (collective_ == nullptr) return absl::OkStatus();
  const StateTensors model = ModelState(), optimizer = OptimizerState();
  for (const StateTensors* state : {&model, &optimizer}) {
    for (const auto& [name, tensor] : *state) {
      if (absl::Status s = collective_->Broadcast(tensor); !s.ok()) return s;
    }
  }
  if (absl::Status s = Restore(model, optimizer); !s.ok()) return s;
  return CheckEqualDigests(collective_, ParametersDigest());
}

uint64_t ActorCriticAlgorithm::ParametersDigest() const {
  const torch::Tensor parameters = steps_.adam().parameters().cpu();
  return XXH3_64bits(parameters.data_ptr(), parameters.nbytes());
}

}  // namespace skein
