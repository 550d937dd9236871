// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo/ppo.h"

#include <torch/types.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "learner/algorithm/ppo/ppo_rules.h"
#include "learner/algorithm/returns/normalized_advantages.h"
#include "learner/optimize/autocast.h"
#include "learner/optimize/sequences.h"

namespace skein {
namespace {

constexpr double kKlFactor = 1.5;
constexpr double kMinLr = 1e-6;
constexpr double kMaxLr = 1e-2;

}  // namespace

double AdaptLearningRate(double lr, double kl, double kl_target) {
  if (kl > 2 * kl_target) return std::max(kMinLr, lr / kKlFactor);
  if (kl < kl_target / 2) return std::min(kMaxLr, lr * kKlFactor);
  return lr;
}

namespace {

// Where minibatches are sequences, data are on the device from the start.
v1::RunConfig OfSequences(const v1::RunConfig& config, const ActorCritic& network) {
  if (!network.memory().exists()) return config;
  v1::RunConfig changed = config;
  v1::LearnerConfig* const learner = changed.mutable_learner();
  learner->set_prefetch_depth(0);
  learner->set_cuda_graph(false);
  return changed;
}

}  // namespace

Ppo::Ppo(const v1::RunConfig& config, const ActorCriticOptions& network, uint64_t seed, Collective* collective,
         torch::Device device)
    : Ppo(config, MakeNetworks(network, seed, device), seed, collective, device) {}

Ppo::Ppo(const v1::RunConfig& config, std::shared_ptr<ActorCritic> network, uint64_t seed, Collective* collective,
         torch::Device device)
    : Ppo(config, network, std::make_shared<PpoObjective>(config.ppo(), *network, TrainingPrecision(config.learner())),
          seed, collective, device) {}

Ppo::Ppo(const v1::RunConfig& config, std::shared_ptr<ActorCritic> network, std::shared_ptr<PpoObjective> objective,
         uint64_t seed, Collective* collective, torch::Device device)
    : ActorCriticAlgorithm(OfSequences(config, *network), network, objective, config.ppo().adam_epsilon(),
                           config.ppo().max_grad_norm(), config.ppo().lr(), collective, device),
      seed_(seed),
      objective_(std::move(objective)) {}

void Ppo::SetSettings(const v1::RunConfig& config) {
  ActorCriticAlgorithm::SetSettings(config);
  objective_->SetSettings(ppo());
  if (ppo().lr_schedule() == v1::LEARNING_RATE_SCHEDULE_CONSTANT) set_lr(ppo().lr());
}

std::vector<WatchRule> Ppo::WatchRules() const { return PpoRules(network().options()); }

absl::Status Ppo::SetTargets(const PpoTargets& targets, const MinibatchOrder& order,
                             const std::function<torch::Tensor(const torch::Tensor&)>& cut, Minibatch* samples) {
  torch::Tensor advantage = advantage_ = targets.advantage;
  if (ppo().normalize_advantages()) {
    auto normalized = NormalizedAdvantages(advantage, order, collective());
    if (!normalized.ok()) return normalized.status();
    advantage = *std::move(normalized);
  }
  const torch::Device device = (*samples)["obs"].device();
  (*samples)["advantage"] = cut(advantage.to(device));
  (*samples)["old_value"] = cut(targets.old_value.to(device));
  (*samples)["value_target"] = cut(targets.value_target.to(device));
  return absl::OkStatus();
}

absl::StatusOr<UpdateStats> Ppo::Update(const Batch& batch, double progress, uint64_t iteration) {
  objective_->SetSchedules(progress);
  if (ppo().lr_schedule() == v1::LEARNING_RATE_SCHEDULE_LINEAR) set_lr(ppo().lr() * std::max(0.0, 1 - progress));
  auto data = Prepare(batch, iteration);
  if (!data.ok()) return data.status();
  std::optional<Sequences> sequences;
  if (network().memory().exists()) {
    sequences.emplace(Sequences::Options{ppo().sequence_length(), ppo().burn_in()}, network(), &*data);
    steps().SetRowSize(sequences->length());
  }
  Minibatch& samples = sequences ? sequences->samples() : data->samples;
  const auto cut = [&](const torch::Tensor& rows) { return sequences ? sequences->Cut(rows) : rows; };
  const auto shuffle = [&](uint32_t epoch) {
    return sequences ? sequences->Shuffle(ppo().minibatch_size(), seed_, iteration, epoch, collective())
                     : data->Shuffle(ppo().minibatch_size(), seed_, iteration, epoch, collective());
  };
  auto order = shuffle(0);
  if (!order.ok()) return order.status();

  GradientSteps::Totals totals = steps().NoSteps();
  PpoTargets targets, first_targets;
  double last_kl = 0;
  int64_t epochs = 0;
  for (uint32_t epoch = 0; epoch < ppo().epochs(); ++epoch) {
    const bool retargets = epoch == 0 || ppo().recompute_advantages();
    const bool rebuilds = epoch == 0 || ppo().sequence_state() != v1::SEQUENCE_STATE_STORED;
    if (sequences && (retargets || rebuilds)) sequences->Unroll(rebuilds, &steps().forward());
    if (retargets) {
      auto computed = ComputePpoTargets(config(), *data, network(), collective(), &steps().forward(), &normalizers());
      if (!computed.ok()) return computed.status();
      targets = *std::move(computed);
      if (epoch == 0) first_targets = targets;
    }
    const bool as_rows = sequences && ppo().normalize_advantages();
    if (absl::Status s = SetTargets(targets, as_rows ? sequences->RowsOf(*order) : *order, cut, &samples); !s.ok()) {
      return s;
    }
    const GradientSteps::Totals before = totals;
    if (absl::Status s = steps().TrainEpoch(samples, *order, lr(), &totals); !s.ok()) return s;
    ++epochs;
    // While a GPU works on what it was given, unless the batch is there too:
    if (epoch == 0) {
      if (absl::Status s = normalizers().CountObservations(batch, data->active); !s.ok()) return s;
    }
    if (epoch + 1 < ppo().epochs()) {
      order = shuffle(epoch + 1);
      if (!order.ok()) return order.status();
    }
    if (absl::Status s = steps().Settle(before, &totals); !s.ok()) return s;
    const int64_t taken = totals.gradient_steps - before.gradient_steps;
    if (taken == 0) continue;
    last_kl =
        (totals.loss.stats[PpoObjective::kKl] - before.loss.stats[PpoObjective::kKl]) / static_cast<double>(taken);
    if (ppo().kl_stop() > 0 && last_kl > ppo().kl_stop()) break;
  }

  const double used_lr = lr();
  if (ppo().lr_schedule() == v1::LEARNING_RATE_SCHEDULE_KL_ADAPTIVE && totals.gradient_steps > 0) {
    set_lr(AdaptLearningRate(lr(), last_kl, ppo().kl_target()));
  }
  auto stats = Finish(totals);
  if (!stats.ok()) return stats;
  stats->Add("explained_variance", first_targets.explained_variance);
  stats->Add("lr", used_lr);
  stats->Add(UpdateStats::kEpochs, static_cast<double>(epochs));
  if (config().sync().mode() == v1::SYNC_MODE_ASYNC) stats->Add("vtrace_rho", first_targets.vtrace_rho);
  return stats;
}

StateTensors Ppo::SampleStats() const {
  if (!advantage_.defined()) return {};
  return {{"advantage", advantage_}};
}

}  // namespace skein
