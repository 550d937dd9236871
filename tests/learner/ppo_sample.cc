// SPDX-License-Identifier: Apache-2.0
#include "tests/learner/ppo_sample.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

#include "learner/network/distribution.h"

namespace skein {

v1::RunConfig SampleConfig() {
  v1::RunConfig config;
  config.mutable_model()->set_normalize_observations(true);
  config.mutable_model()->set_normalize_returns(true);
  v1::PpoConfig& ppo = *config.mutable_ppo();
  ppo.set_lr(3e-3);
  ppo.set_lr_schedule(v1::LEARNING_RATE_SCHEDULE_CONSTANT);
  ppo.set_kl_target(0.01);
  ppo.set_epochs(2);
  ppo.set_minibatch_size(8);
  ppo.set_gamma(0.9);
  ppo.set_gae_lambda(0.8);
  ppo.set_clip(0.2);
  ppo.set_value_coefficient(0.5);
  ppo.set_max_grad_norm(0.5);
  ppo.set_recompute_advantages(true);
  ppo.set_adam_epsilon(1e-8);
  return config;
}

ActorCriticOptions SampleNetwork(bool discrete, bool shared_trunk) {
  ActorCriticOptions options;
  options.obs_size = 3;
  options.action_size = 2;
  options.discrete = discrete;
  options.hidden = {8};
  options.shared_trunk = shared_trunk;
  return options;
}

torch::Tensor LogProb(const ActorCritic& network, const torch::Tensor& head, const torch::Tensor& action) {
  return network.options().discrete ? CategoricalLogProb(head, action)
                                    : GaussianLogProb(head, network.log_std(), action);
}

Batch CollectFrom(const ActorCriticAlgorithm& algorithm, int64_t steps, int64_t columns) {
  const torch::NoGradGuard no_grad;
  ActorCritic network = algorithm.network();
  const ActorCriticOptions& options = network.options();
  Batch batch;
  batch["obs"] = 1 + 2 * torch::randn({steps + 1, columns, options.obs_size});
  const torch::Tensor head = network.PolicyHead(
      algorithm.acting().obs_scale.Apply(batch["obs"].narrow(0, 0, steps)).view({-1, options.obs_size}));
  const torch::Tensor action =
      options.discrete ? head.softmax(1).multinomial(1).squeeze(1)
                       : head + network.log_std().exp() * torch::randn({steps * columns, options.action_size});
  batch["log_prob"] = LogProb(network, head, action).view({steps, columns});
  batch["action"] = options.discrete ? action.view({steps, columns}) : action.view({steps, columns, -1});
  batch["reward"] = torch::randn({steps, columns});
  batch["terminated"] = torch::zeros({steps, columns}, torch::kBool);
  batch["truncated"] = torch::zeros({steps, columns}, torch::kBool);
  batch["final_obs"] = torch::empty({0, options.obs_size});
  batch["final_index"] = torch::empty({0}, torch::kInt64);
  return batch;
}

Batch CollectEpisodes(const ActorCriticAlgorithm& algorithm, int64_t steps, int64_t columns) {
  Batch batch = CollectFrom(algorithm, steps, columns);
  const torch::Tensor draw = torch::rand({steps, columns});
  batch["terminated"] = draw < 0.1;
  batch["truncated"] = torch::logical_and(draw >= 0.1, draw < 0.3);
  batch["final_index"] = batch["truncated"].flatten().nonzero().squeeze(1);
  batch["final_obs"] = torch::randn({batch["final_index"].size(0), batch["obs"].size(2)});
  return batch;
}

ActorCriticOptions CentralNetwork(bool discrete) {
  ActorCriticOptions options = SampleNetwork(discrete);
  options.critic_input_size = options.obs_size + 2;
  return options;
}

Batch CollectTeams(const ActorCriticAlgorithm& algorithm, int64_t steps, int64_t envs, int64_t agents) {
  Batch batch = CollectFrom(algorithm, steps, envs * agents);
  const torch::Tensor draw = torch::rand({steps, envs});
  const torch::Tensor team_terminated = draw < 0.1;
  const torch::Tensor team_truncated = torch::logical_and(draw >= 0.1, draw < 0.3);
  const torch::Tensor leaves = torch::rand({steps, envs, agents}) < 0.2;
  batch["active"] = torch::ones({steps, envs, agents}, torch::kBool);
  batch["terminated"] = torch::zeros_like(batch["active"]);
  batch["truncated"] = torch::zeros_like(batch["active"]);
  torch::Tensor active = torch::ones({envs, agents}, torch::kBool);
  for (int64_t t = 0; t < steps; ++t) {
    const torch::Tensor over = team_terminated[t].unsqueeze(1), cut = team_truncated[t].unsqueeze(1);
    batch["active"][t].copy_(active);
    const torch::Tensor ended = torch::logical_and(active, torch::logical_or(over, leaves[t]));
    batch["terminated"][t].copy_(ended);
    batch["truncated"][t].copy_(torch::logical_and(torch::logical_and(active, cut), ended.logical_not()));
    active = torch::logical_or(torch::logical_and(active, ended.logical_not()), torch::logical_or(over, cut));
  }
  const auto flat = [&](const torch::Tensor& tensor) { return tensor.reshape({steps, envs * agents}); };
  batch["active"] = flat(batch["active"]);
  batch["terminated"] = flat(batch["terminated"]);
  batch["truncated"] = flat(batch["truncated"]);
  batch["final_index"] = flat(team_truncated.unsqueeze(2).expand({steps, envs, agents})).flatten().nonzero().squeeze(1);
  batch["final_obs"] = torch::randn({batch["final_index"].size(0), batch["obs"].size(2)});
  batch["state"] = 1 + 2 * torch::randn({steps + 1, envs, 2});
  batch["final_state"] = torch::randn({batch["final_index"].size(0) / agents, 2});
  return batch;
}

UpdateStats Train(Algorithm& algorithm, const Batch& batch, double progress, uint64_t iteration) {
  auto stats = algorithm.Update(batch, progress, iteration);
  EXPECT_TRUE(stats.ok()) << stats.status();
  return stats.ok() ? *stats : UpdateStats();
}

torch::Tensor Find(const std::vector<std::pair<std::string, torch::Tensor>>& state, const std::string& name) {
  for (const auto& [key, tensor] : state) {
    if (key == name) return tensor;
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

double LargestDifference(const std::vector<std::pair<std::string, torch::Tensor>>& got,
                         const std::vector<std::pair<std::string, torch::Tensor>>& want) {
  EXPECT_EQ(got.size(), want.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
    EXPECT_EQ(got[i].first, want[i].first);
    largest = std::max(largest, (got[i].second - want[i].second).abs().max().item<double>());
  }
  return largest;
}

void ExpectEqualStates(const Algorithm& a, const Algorithm& b) {
  const auto expect_equal = [](const auto& x, const auto& y) {
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(x[i].first, y[i].first);
      EXPECT_TRUE(torch::equal(x[i].second, y[i].second)) << x[i].first;
    }
  };
  expect_equal(a.ModelState(), b.ModelState());
  expect_equal(a.OptimizerState(), b.OptimizerState());
}

}  // namespace skein
