// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "learner/network/actor_critic.h"
#include "learner/network/normalizer.h"
#include "policy/policy.h"

namespace skein {

inline std::vector<float> Floats(const torch::Tensor& tensor) {
  const torch::Tensor dense = tensor.detach().contiguous();
  return {dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel()};
}

// The policy of that network, not by way of a snapshot.
inline std::shared_ptr<const Policy> PolicyOf(uint64_t version, const ActorCritic& network, const ObsScale& scale) {
  std::vector<std::vector<float>> values;
  for (const auto& [name, parameter] : network.PolicyParameters()) values.push_back(Floats(parameter));
  return MakePolicy(version, network.options(), values, {Floats(scale.mean), Floats(scale.inv_std)});
}

// What a policy without memory makes of raw observations [B, O].
inline torch::Tensor Head(const Policy& policy, const torch::Tensor& obs) {
  const torch::Tensor in = obs.contiguous();
  torch::Tensor head = torch::empty({in.size(0), policy.spec().head_size()});
  policy.Act(in.data_ptr<float>(), nullptr, in.size(0), head.data_ptr<float>(), nullptr);
  return head;
}

}  // namespace skein
