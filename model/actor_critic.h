// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace skein {

enum class ActivationKind { kTanh, kElu, kRelu };

// Shape of the networks; both sides build the same from the run's configuration and the environment's spec.
struct ActorCriticOptions {
  int64_t obs_size = 0;
  int64_t action_size = 0;
  bool discrete = false;
  int64_t critic_input_size = 0;  // 0 = obs_size; the global state's size for a central critic.
  std::vector<int64_t> hidden = {64, 64};
  ActivationKind activation = ActivationKind::kTanh;
  bool shared_trunk = false;
  double init_gain = 1.4142135623730951;
  double policy_head_scale = 0.01;
  double init_log_std = -0.5;
};

// Policy and value networks. Parameters in a fixed order with fixed names:
// "policy.<i>.weight|bias", "policy.head.weight|bias", "log_std" (continuous only), "value.<i>...", "value.head...";
// with shared_trunk "trunk.<i>..." instead of the two hidden stacks.
// Forward calls are const in effect; several threads may run them at once if none writes parameters.
class ActorCritic : public torch::nn::Module {
 public:
  // Initial weights are orthogonal (Saxe et al. 2014) from counter-based streams keyed by `seed`; biases are zero.
  ActorCritic(const ActorCriticOptions& options, uint64_t seed);

  // obs [B, O] -> mean [B, D] (continuous) or logits [B, choices] (discrete).
  torch::Tensor PolicyHead(const torch::Tensor& obs);
  // input [B, critic_input] -> [B].
  torch::Tensor Value(const torch::Tensor& input);
  // Both; with a shared trunk it is computed once. Without one, critic_input may differ from obs.
  std::pair<torch::Tensor, torch::Tensor> PolicyHeadAndValue(const torch::Tensor& obs, const torch::Tensor& critic_input);

  const torch::Tensor& log_std() const { return log_std_; }  // [D]; undefined if discrete.
  const ActorCriticOptions& options() const { return options_; }
  // Parameters an actor needs: everything but the value function's.
  std::vector<std::pair<std::string, torch::Tensor>> PolicyParameters() const;
  std::vector<std::pair<std::string, torch::Tensor>> AllParameters() const;

 private:
  ActorCriticOptions options_;
  // Weight and bias of each layer of one stack, head last.
  std::vector<std::pair<torch::Tensor, torch::Tensor>> trunk_, policy_, value_;
  torch::Tensor log_std_;
};

}  // namespace skein
