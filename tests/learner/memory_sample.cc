// SPDX-License-Identifier: Apache-2.0
#include "tests/learner/memory_sample.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "tests/learner/ppo_sample.h"

namespace skein {

torch::Tensor LiteralStep(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& state) {
  if (cell.kind == MemoryKind::kGru) {
    return torch::gru_cell(input, state, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh);
  }
  const int64_t H = cell.size();
  const auto [h, c] = torch::lstm_cell(input, {state.narrow(1, 0, H), state.narrow(1, H, H)}, cell.weight_ih,
                                       cell.weight_hh, cell.bias_ih, cell.bias_hh);
  return torch::cat({h, c}, 1);
}

std::vector<torch::Tensor> LiteralStates(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& ended,
                                         torch::Tensor state,
                                         const std::function<torch::Tensor(int64_t t, const torch::Tensor&)>& change) {
  std::vector<torch::Tensor> states;
  for (int64_t t = 0; t < input.size(0); ++t) {
    if (t > 0) state = state * ended[t - 1].logical_not().unsqueeze(1);
    if (t > 0 && change) state = change(t, state);
    state = LiteralStep(cell, input[t], state);
    states.push_back(state);
  }
  return states;
}

ActorCriticOptions MemoryNetwork(MemoryKind kind, bool discrete, bool shared_trunk, bool critic_memory, bool central) {
  ActorCriticOptions options = SampleNetwork(discrete, shared_trunk);
  if (central) options.critic_input_size = options.obs_size + 2;
  options.memory = kind;
  options.memory_size = 5;
  options.critic_memory = critic_memory;
  options.policy_head_scale = 1;
  return options;
}

Batch CollectRemembering(const ActorCriticAlgorithm& algorithm, int64_t steps, int64_t envs, int64_t agents) {
  const torch::NoGradGuard no_grad;
  const ActorCritic& network = algorithm.network();
  const ActorCriticOptions& options = network.options();
  const int64_t columns = envs * agents;
  Batch batch;
  batch["obs"] = torch::randn({steps + 1, columns, options.obs_size});
  batch["first_policy_state"] = 0.5 * torch::randn({columns, options.state_size()});
  const torch::Tensor draw = torch::rand({steps, envs});
  const torch::Tensor terminated = draw < 0.1, cut = torch::logical_and(draw >= 0.1, draw < 0.3);
  batch["ended"] = torch::logical_or(terminated, cut);
  const auto of_agents = [&](const torch::Tensor& of_envs) {
    return of_envs.unsqueeze(2).expand({steps, envs, agents}).reshape({steps, columns}).contiguous();
  };
  batch["terminated"] = of_agents(terminated);
  batch["truncated"] = of_agents(cut);
  batch["final_index"] = of_agents(cut).flatten().nonzero().squeeze(1);
  batch["final_obs"] = torch::randn({batch["final_index"].size(0), options.obs_size});
  if (options.critic_input_size > 0) {
    const int64_t G = options.critic_input_size - options.obs_size;
    batch["state"] = torch::randn({steps + 1, envs, G});
    batch["final_state"] = torch::randn({batch["final_index"].size(0) / agents, G});
  }
  if (agents > 1) {
    // Each agent may leave before its team's episode ends.
    batch["active"] = torch::ones({steps, columns}, torch::kBool);
    const torch::Tensor leaves = torch::rand({steps, columns}) < 0.2, over = of_agents(batch["ended"]);
    torch::Tensor active = torch::ones({columns}, torch::kBool);
    for (int64_t t = 0; t < steps; ++t) {
      batch["active"][t].copy_(active);
      const torch::Tensor left = active.logical_and(leaves[t]);
      batch["terminated"][t].copy_(active.logical_and(left.logical_or(batch["terminated"][t])));
      batch["truncated"][t].copy_(
          active.logical_and(batch["truncated"][t]).logical_and(batch["terminated"][t].logical_not()));
      active = active.logical_and(left.logical_not()).logical_or(over[t]);
    }
  }
  const torch::Tensor input = algorithm.acting().obs_scale.Apply(batch["obs"].narrow(0, 0, steps));
  const auto states =
      LiteralStates(network.memory(), input, of_agents(batch["ended"]), batch["first_policy_state"], {});
  const torch::Tensor h = torch::stack(states).narrow(2, 0, options.memory_size).reshape({steps * columns, -1});
  const torch::Tensor head = network.PolicyHead(h);
  const torch::Tensor action =
      options.discrete ? head.softmax(1).multinomial(1).squeeze(1)
                       : head + network.log_std().exp() * torch::randn({steps * columns, options.action_size});
  batch["log_prob"] = LogProb(network, head, action).view({steps, columns});
  batch["action"] = options.discrete ? action.view({steps, columns}) : action.view({steps, columns, -1});
  batch["reward"] = torch::randn({steps, columns});
  return batch;
}

}  // namespace skein
