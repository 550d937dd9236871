// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/reinforce/reinforce.h"

#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "base/config/algorithm_rules.h"
#include "learner/algorithm/returns/normalized_advantages.h"
#include "learner/algorithm/returns/value_estimates.h"
#include "learner/optimize/action_terms.h"
#include "learner/optimize/autocast.h"

namespace skein {

Loss::Terms ReinforceLoss::Compute(const Minibatch& samples, const std::vector<torch::Tensor>&) const {
  const ActionTerms now = EvaluateActions(network_, samples, precision_);
  const torch::Tensor policy = -(now.log_prob * samples["advantage"]).mean();
  const torch::Tensor value = (now.value - samples["value_target"]).square().mean();
  const torch::Tensor entropy = now.entropy.mean();
  const torch::Tensor total = policy + config_.value_coefficient() * value - config_.entropy_coefficient() * entropy;
  return {total, {policy, value, entropy}};
}

Reinforce::Reinforce(const v1::RunConfig& config, const ActorCriticOptions& network, Collective* collective,
                     torch::Device device)
    : Reinforce(config, MakeNetworks(network, config.seed(), device), collective, device) {}

Reinforce::Reinforce(const v1::RunConfig& config, std::shared_ptr<ActorCritic> network, Collective* collective,
                     torch::Device device)
    : ActorCriticAlgorithm(
          config, network,
          std::make_shared<ReinforceLoss>(config.reinforce(), *network, TrainingPrecision(config.learner())),
          /*adam_epsilon=*/1e-8, config.reinforce().max_grad_norm(), config.reinforce().lr(), collective, device) {}

void Reinforce::SetSettings(const v1::RunConfig& config) {
  ActorCriticAlgorithm::SetSettings(config);
  if (config.reinforce().lr_schedule() == v1::SCHEDULE_CONSTANT) set_lr(config.reinforce().lr());
}

absl::StatusOr<UpdateStats> Reinforce::Update(const Batch& batch, double progress, uint64_t iteration) {
  const v1::ReinforceConfig& settings = config().reinforce();
  if (settings.lr_schedule() == v1::SCHEDULE_LINEAR) set_lr(settings.lr() * std::max(0.0, 1 - progress));
  auto data = Prepare(batch, iteration);
  if (!data.ok()) return data.status();
  const auto estimates = EstimateValues(*data, normalizers(), settings.gamma(), &steps().forward());
  if (!estimates.ok()) return estimates.status();
  // With lambda 1 the value function's guesses cancel out, except the one at the end.
  const torch::Tensor advantage = GeneralizedAdvantage(estimates->input, settings.gamma(), /*lambda=*/1).flatten();
  const torch::Tensor value = estimates->input.value.flatten(), returns = advantage + value;
  const auto order = data->Shuffle(MinibatchSize(config()), config().seed(), iteration, /*epoch=*/0, collective());
  if (!order.ok()) return order.status();
  const auto normalized = NormalizedAdvantages(advantage, *order, collective());
  if (!normalized.ok()) return normalized.status();
  const torch::Device device = data->samples["obs"].device();
  data->samples["advantage"] = normalized->to(device);
  data->samples["value_target"] = (returns / estimates->scale).to(device);

  GradientSteps::Totals totals = steps().NoSteps();
  if (absl::Status s = steps().TrainEpoch(data->samples, *order, lr(), &totals); !s.ok()) return s;
  if (absl::Status s = normalizers().CountObservations(batch, data->active); !s.ok()) return s;
  const auto active = [&](const torch::Tensor& all) {
    return data->active.defined() ? all.masked_select(data->active) : all;
  };
  const auto explained = normalizers().CountReturns(active(returns), active(value));
  if (!explained.ok()) return explained.status();
  if (absl::Status s = steps().Settle(steps().NoSteps(), &totals); !s.ok()) return s;
  auto stats = Finish(totals);
  if (!stats.ok()) return stats;
  stats->Add("explained_variance", *explained);
  stats->Add("lr", lr());
  return stats;
}

}  // namespace skein
