// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/training_data.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

namespace skein {

TrainingData PrepareData(const Batch& batch, const std::vector<std::string>& fields, const ActorCriticOptions& network,
                         const Normalizers& normalizers, torch::Device device, DeviceCopier* copier) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor& reward = batch["reward"];
  const int64_t columns = reward.size(1), size = reward.numel();
  TrainingData data{
      batch, {reward.size(0), columns, batch.column_offset, batch.total_columns > 0 ? batch.total_columns : columns},
      {},    {},
      {},    {},
      {}};
  if (batch.has("active")) data.active = batch["active"].reshape({size}).contiguous();
  // Where they are trained on: observations first, then what else is read.
  const ObsScale scale = normalizers.obs_scale();
  const torch::Tensor action = batch["action"].contiguous();
  std::vector<torch::Tensor> tensors = {
      batch["obs"].reshape({-1, network.obs_size}),
      batch.has("final_obs") ? batch["final_obs"] : torch::empty({0, network.obs_size}),
      network.discrete ? action.view({size}) : action.view({size, network.action_size}), scale.mean, scale.inv_std};
  const bool central = normalizers.has_state();
  int64_t G = 0;
  if (central) {
    const ObsScale of_state = normalizers.state_scale();
    G = of_state.mean.numel();
    tensors.insert(tensors.end(), {batch["state"].reshape({-1, G}),
                                   batch.has("final_state") ? batch["final_state"] : torch::empty({0, G}),
                                   of_state.mean, of_state.inv_std});
  }
  const size_t first_field = tensors.size();
  for (const std::string& field : fields) tensors.push_back(batch[field].contiguous().flatten(0, 1));
  if (!batch["obs"].is_cpu()) {
    for (torch::Tensor& tensor : tensors) tensor = tensor.to(device);
  } else if (!device.is_cpu() && copier != nullptr) {
    tensors = copier->Finish(copier->Start(tensors));
  }
  const ObsScale there{tensors[3], tensors[4]};
  data.critic = there.Apply(tensors[0]);
  data.final_critic = there.Apply(tensors[1]);
  data.policy = data.samples["obs"] = data.critic.narrow(0, 0, size);
  data.samples["action"] = tensors[2];
  for (size_t i = 0; i < fields.size(); ++i) data.samples[fields[i]] = tensors[first_field + i];
  if (central) {
    const ObsScale of_state{tensors[7], tensors[8]};
    // Each environment's state beside each of its agents' observations.
    const auto beside = [&of_state, G](const torch::Tensor& obs, const torch::Tensor& state) {
      const int64_t agents = state.size(0) > 0 ? obs.size(0) / state.size(0) : 1;
      return torch::cat({obs, of_state.Apply(state).unsqueeze(1).expand({-1, agents, G}).reshape({-1, G})}, 1);
    };
    data.critic = beside(data.critic, tensors[5]);
    data.final_critic = beside(data.final_critic, tensors[6]);
    data.samples["critic_input"] = data.critic.narrow(0, 0, size);
  }
  return data;
}

absl::StatusOr<MinibatchOrder> TrainingData::Shuffle(int64_t minibatch_size, uint64_t seed, uint64_t iteration,
                                                     uint32_t epoch, Collective* collective) const {
  const torch::Device device = samples.tensors().at("obs").device();
  if (!device.is_cpu()) {
    const torch::Tensor rows = active.defined()
                                   ? active.to(device)
                                   : torch::ones({share.size()}, torch::TensorOptions(torch::kBool).device(device));
    return ShuffleActive(share, rows, minibatch_size, seed, iteration, epoch, collective);
  }
  MinibatchOrder order = ShuffleMinibatches(share, minibatch_size, seed, iteration, epoch);
  if (!active.defined()) return order;
  if (absl::Status s = KeepActive(active.cpu(), collective, &order); !s.ok()) return s;
  return order;
}

}  // namespace skein
