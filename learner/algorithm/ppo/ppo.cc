// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo/ppo.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "learner/algorithm/returns/advantage.h"
#include "learner/algorithm/returns/posthumous_reward.h"
#include "learner/algorithm/returns/vtrace.h"
#include "learner/algorithm/returns/winsorize.h"
#include "learner/network/distribution.h"
#include "learner/optimize/across_ranks.h"

namespace skein {
namespace {

constexpr double kEpsilon = 1e-8;
constexpr double kKlFactor = 1.5;
constexpr double kMinLr = 1e-6;
constexpr double kMaxLr = 1e-2;

std::shared_ptr<ActorCritic> MakeNetwork(const ActorCriticOptions& options, uint64_t seed, torch::Device device) {
  auto network = std::make_shared<ActorCritic>(options, seed);
  network->to(device);
  return network;
}

std::vector<torch::Tensor> Parameters(const ActorCritic& network) {
  std::vector<torch::Tensor> tensors;
  for (const auto& [name, parameter] : network.AllParameters()) tensors.push_back(parameter);
  return tensors;
}

bool AllFinite(const torch::Tensor& tensor) { return torch::isfinite(tensor.sum()).item<bool>(); }

}  // namespace

double AdaptLearningRate(double lr, double kl, double kl_target) {
  if (kl > 2 * kl_target) return std::max(kMinLr, lr / kKlFactor);
  if (kl < kl_target / 2) return std::min(kMaxLr, lr * kKlFactor);
  return lr;
}

Ppo::Ppo(const v1::RunConfig& config, const ActorCriticOptions& network, uint64_t seed, Collective* collective,
         torch::Device device)
    : config_(config),
      seed_(seed),
      collective_(collective),
      device_(device),
      network_(MakeNetwork(network, seed, device)),
      optimizer_(Parameters(*network_), config.ppo().adam_epsilon()),
      gradient_(config.learner(), *network_, &optimizer_, collective),
      copier_(device),
      central_(!network.shared_trunk && network.critic_input_size > 0),
      obs_moments_(network.obs_size),
      state_moments_(central_ ? network.critic_input_size - network.obs_size : 0),
      return_moments_(1),
      enqueues_(!device.is_cpu()),
      lr_(config.ppo().lr()),
      loss_config_(config.ppo()) {
  if (config.learner().cuda_graph()) RecordSteps(nullptr);
  if (!device.is_cuda()) return;
  at::globalContext().setAllowTF32CuBLAS(config.learner().tf32());
  at::globalContext().setAllowTF32CuDNN(config.learner().tf32());
  at::globalContext().setBenchmarkCuDNN(config.learner().cudnn_benchmark());
}

ObsScale Ppo::obs_scale() const {
  return config_.model().normalize_observations() ? ObsScale::From(obs_moments_)
                                                  : ObsScale::Identity(network_->options().obs_size);
}

ObsScale Ppo::state_scale() const {
  return config_.model().normalize_observations() ? ObsScale::From(state_moments_)
                                                  : ObsScale::Identity(state_moments_.mean().numel());
}

void Ppo::SetSchedules(double progress) {
  const v1::PpoConfig& ppo = config_.ppo();
  const double left = std::max(0.0, 1 - progress);
  if (ppo.lr_schedule() == v1::LEARNING_RATE_SCHEDULE_LINEAR) lr_ = ppo.lr() * left;
  if (ppo.clip_schedule() == v1::SCHEDULE_LINEAR) loss_config_.set_clip(ppo.clip() * left);
  if (ppo.entropy_schedule() == v1::SCHEDULE_LINEAR) {
    loss_config_.set_entropy_coefficient(ppo.entropy_coefficient() * left);
  }
}

Ppo::Data Ppo::Prepare(const Batch& batch) {
  const torch::NoGradGuard no_grad;
  const ActorCriticOptions& options = network_->options();
  const int64_t columns = batch["reward"].size(1), size = batch["reward"].numel();
  Data data{
      batch,
      {batch["reward"].size(0), columns, batch.column_offset, batch.total_columns > 0 ? batch.total_columns : columns}};
  if (batch["active"].defined()) data.active = batch["active"].reshape({size}).contiguous();
  // Where they are trained on: observations first, then what else is read.
  const ObsScale scale = obs_scale();
  std::vector<torch::Tensor> tensors = {
      batch["obs"].reshape({-1, options.obs_size}),
      batch["final_obs"].defined() ? batch["final_obs"] : torch::empty({0, options.obs_size}),
      options.discrete ? batch["action"].contiguous().view({size})
                       : batch["action"].contiguous().view({size, options.action_size}),
      batch["log_prob"].contiguous().view({size}),
      scale.mean,
      scale.inv_std};
  const int64_t G = state_moments_.mean().numel();
  if (central_) {
    const ObsScale of_state = state_scale();
    tensors.insert(tensors.end(), {batch["state"].reshape({-1, G}),
                                   batch["final_state"].defined() ? batch["final_state"] : torch::empty({0, G}),
                                   of_state.mean, of_state.inv_std});
  }
  if (!batch["obs"].is_cpu()) {
    for (torch::Tensor& tensor : tensors) tensor = tensor.to(device_);
  } else if (!device_.is_cpu() && !prefetches()) {
    tensors = copier_.Finish(copier_.Start(tensors));
  }
  const ObsScale there{tensors[4], tensors[5]};
  data.critic = there.Apply(tensors[0]);
  data.final_critic = there.Apply(tensors[1]);
  data.samples.obs = data.critic.narrow(0, 0, size);
  data.samples.action = tensors[2];
  data.samples.log_prob = tensors[3];
  if (central_) {
    const ObsScale of_state{tensors[8], tensors[9]};
    // Each environment's state beside each of its agents' observations.
    const auto beside = [&of_state, G](const torch::Tensor& obs, const torch::Tensor& state) {
      const int64_t agents = state.size(0) > 0 ? obs.size(0) / state.size(0) : 1;
      return torch::cat({obs, of_state.Apply(state).unsqueeze(1).expand({-1, agents, G}).reshape({-1, G})}, 1);
    };
    data.critic = beside(data.critic, tensors[6]);
    data.final_critic = beside(data.final_critic, tensors[7]);
    data.samples.critic_input = data.critic.narrow(0, 0, size);
  }
  return data;
}

absl::StatusOr<double> Ppo::CountReturns(const torch::Tensor& returns, const torch::Tensor& value) {
  // What is not finite is skipped in training and must not stay in the statistics for ever either.
  const bool normalize = config_.model().normalize_returns(), finite = AllFinite(returns);
  const torch::Tensor counted = Winsorize(returns.view({-1, 1}), return_moments_);
  double spread = 0, rest = 0;
  if (collective_ == nullptr) {
    if (normalize && finite) return_moments_.Update(counted);
    spread = returns.var(/*unbiased=*/false).item<double>();
    rest = (returns - value).var(/*unbiased=*/false).item<double>();
  } else {
    RunningMoments mine(3);
    mine.Update(torch::stack({counted.view({-1}), returns, returns - value}, 1));
    const auto all = MergeOverRanks(collective_, {mine, finite});
    if (!all.ok()) return all.status();
    RunningMoments of_returns(1);
    of_returns.Restore(all->moments.count(), all->moments.mean().narrow(0, 0, 1),
                       all->moments.variance().narrow(0, 0, 1));
    if (normalize && all->finite) return_moments_.Merge(of_returns);
    spread = all->moments.variance()[1].item<double>();
    rest = all->moments.variance()[2].item<double>();
  }
  return spread > 0 ? 1 - rest / spread : 0;
}

absl::StatusOr<Ppo::Targets> Ppo::ComputeTargets(const Data& data) {
  const torch::NoGradGuard no_grad;
  const v1::PpoConfig& ppo = config_.ppo();
  const Batch& batch = data.batch;
  const int64_t columns = data.share.columns, size = data.share.size();
  const torch::Device device = batch["reward"].device();
  const auto values = gradient_.Values(data.critic, device);
  if (!values.ok()) return values.status();
  Targets targets;
  targets.old_value = values->narrow(0, 0, size);
  torch::Tensor next_value = values->narrow(0, columns, size).clone();
  if (data.final_critic.size(0) > 0) {
    const auto final_values = gradient_.Values(data.final_critic, device);
    if (!final_values.ok()) return final_values.status();
    next_value.index_copy_(0, batch["final_index"], *final_values);
  }

  if (batch["final_value"].defined()) {
    next_value =
        torch::where(batch["truncated"], batch["final_value"], next_value.view_as(batch["reward"])).view({size});
  }

  const double scale =
      config_.model().normalize_returns() ? std::sqrt(return_moments_.variance().item<double>() + kEpsilon) : 1.0;
  const torch::Tensor value = targets.old_value * scale;
  const torch::Tensor reward =
      batch["active"].defined() ? CreditPosthumously(batch["reward"], batch["active"], ppo.gamma()) : batch["reward"];
  const AdvantageInput input{reward, value.view_as(batch["reward"]), (next_value * scale).view_as(batch["reward"]),
                             batch["terminated"], torch::logical_or(batch["terminated"], batch["truncated"])};
  torch::Tensor returns;
  if (config_.sync().mode() == v1::SYNC_MODE_ASYNC) {
    const auto head = gradient_.PolicyHead(data.samples.obs);
    if (!head.ok()) return head.status();
    const torch::Tensor action = data.samples.action.cpu();
    const torch::Tensor log_prob = network_->options().discrete
                                       ? CategoricalLogProb(*head, action)
                                       : GaussianLogProb(*head, network_->log_std().cpu(), action);
    torch::Tensor log_ratio = (log_prob - data.samples.log_prob.cpu()).view_as(batch["reward"]);
    if (batch["active"].defined()) log_ratio = log_ratio.masked_fill(batch["active"].logical_not(), 0);
    const VtraceTargets vtrace =
        Vtrace(input, log_ratio, {ppo.gamma(), ppo.gae_lambda(), ppo.vtrace_rho_max(), ppo.vtrace_c_max()});
    targets.advantage = vtrace.advantage.view({size});
    returns = vtrace.target.view({size});
    std::vector<double> rho = {vtrace.mean_rho};
    if (collective_ != nullptr) {
      rho[0] *= static_cast<double>(size) / static_cast<double>(data.share.total_size());
      if (absl::Status s = SumOverRanks(collective_, &rho); !s.ok()) return s;
    }
    targets.figures.vtrace_rho = rho[0];
  } else {
    targets.advantage = GeneralizedAdvantage(input, ppo.gamma(), ppo.gae_lambda()).view({size});
    returns = targets.advantage + value;
  }
  targets.value_target = returns / scale;
  const auto explained = data.active.defined()
                             ? CountReturns(returns.masked_select(data.active), value.masked_select(data.active))
                             : CountReturns(returns, value);
  if (!explained.ok()) return explained.status();
  targets.figures.explained_variance = *explained;
  return targets;
}

absl::Status Ppo::CountRows(const torch::Tensor& rows, const torch::Tensor& all, RunningMoments* moments) {
  const bool finite = AllFinite(all);
  const torch::Tensor counted = Winsorize(rows, *moments);
  if (collective_ == nullptr) {
    if (finite) moments->Update(counted);
    return absl::OkStatus();
  }
  RunningMoments mine(rows.size(1));
  mine.Update(counted);
  const auto merged = MergeOverRanks(collective_, {mine, finite});
  if (!merged.ok()) return merged.status();
  if (merged->finite) moments->Merge(merged->moments);
  return absl::OkStatus();
}

absl::Status Ppo::CountObservations(const Data& data) {
  if (!config_.model().normalize_observations()) return absl::OkStatus();
  const Batch& batch = data.batch;
  const int64_t steps = batch["reward"].size(0);
  torch::Tensor rows = batch["obs"].narrow(0, 0, steps).reshape({-1, batch["obs"].size(2)});
  if (data.active.defined()) rows = rows.index_select(0, data.active.nonzero().view({-1}));
  absl::Status status = CountRows(rows, batch["obs"], &obs_moments_);
  if (!status.ok() || !central_) return status;
  return CountRows(batch["state"].narrow(0, 0, steps).reshape({-1, batch["state"].size(2)}), batch["state"],
                   &state_moments_);
}

absl::StatusOr<MinibatchOrder> Ppo::Shuffle(const Data& data, uint64_t iteration, uint32_t epoch) {
  MinibatchOrder order = ShuffleMinibatches(data.share, config_.ppo().minibatch_size(), seed_, iteration, epoch);
  if (!data.active.defined()) return order;
  if (absl::Status s = KeepActive(data.active.cpu(), collective_, &order); !s.ok()) return s;
  return order;
}

absl::StatusOr<Ppo::Figures> Ppo::Update(const Batch& batch, double progress, uint64_t iteration) {
  const v1::PpoConfig& ppo = config_.ppo();
  SetSchedules(progress);
  Data data = Prepare(batch);
  const RowShare& share = data.share;
  if (share.total_size() == 0) return absl::FailedPreconditionError("the batch has no sample on any rank");
  if (absl::Status s = CheckShares(
          collective_, {share.steps, share.offset, share.columns, share.total, static_cast<int64_t>(iteration)});
      !s.ok()) {
    return s;
  }

  Totals totals;
  Targets targets;
  TargetFigures first_targets;
  auto order = Shuffle(data, iteration, 0);
  if (!order.ok()) return order.status();
  double last_kl = 0;
  int64_t epochs = 0;
  for (uint32_t epoch = 0; epoch < ppo.epochs(); ++epoch) {
    if (epoch == 0 || ppo.recompute_advantages()) {
      auto computed = ComputeTargets(data);
      if (!computed.ok()) return computed.status();
      targets = *std::move(computed);
      if (epoch == 0) first_targets = targets.figures;
    }
    torch::Tensor advantage = advantage_ = targets.advantage;
    if (ppo.normalize_advantages()) {
      auto normalized = NormalizedAdvantages(advantage.cpu(), *order, collective_);
      if (!normalized.ok()) return normalized.status();
      advantage = *std::move(normalized);
    }
    const torch::Device device = data.samples.obs.device();
    data.samples.advantage = advantage.to(device);
    data.samples.old_value = targets.old_value.to(device);
    data.samples.value_target = targets.value_target.to(device);
    const Totals before = totals;
    if (absl::Status s = TrainEpoch(data.samples, *order, totals); !s.ok()) return s;
    ++epochs;
    // While a GPU works on what it was given:
    if (epoch == 0) {
      if (absl::Status s = CountObservations(data); !s.ok()) return s;
    }
    if (epoch + 1 < ppo.epochs()) {
      order = Shuffle(data, iteration, epoch + 1);
      if (!order.ok()) return order.status();
    }
    if (absl::Status s = Settle(before, totals); !s.ok()) return s;
    const int64_t taken = totals.gradient_steps - before.gradient_steps;
    if (taken == 0) continue;
    last_kl = (totals.loss.kl - before.loss.kl) / static_cast<double>(taken);
    if (ppo.kl_stop() > 0 && last_kl > ppo.kl_stop()) break;
  }

  const double used_lr = lr_;
  if (ppo.lr_schedule() == v1::LEARNING_RATE_SCHEDULE_KL_ADAPTIVE && totals.gradient_steps > 0) {
    lr_ = AdaptLearningRate(lr_, last_kl, ppo.kl_target());
  }
  if (collective_ != nullptr) {
    if (absl::Status s = CheckEqualDigests(collective_, ParametersDigest()); !s.ok()) return s;
  }
  const double taken = static_cast<double>(std::max<int64_t>(1, totals.gradient_steps));
  Figures figures{{"policy_loss", totals.loss.policy / taken},
                  {"value_loss", totals.loss.value / taken},
                  {"entropy", totals.loss.entropy / taken},
                  {"kl", totals.loss.kl / taken},
                  {"clip_fraction", totals.loss.clip_fraction / taken},
                  {"explained_variance", first_targets.explained_variance},
                  {"lr", used_lr},
                  {"grad_norm", totals.grad_norm / taken},
                  {"epochs", static_cast<double>(epochs)},
                  {"gradient_steps", static_cast<double>(totals.gradient_steps)},
                  {"skipped_steps", static_cast<double>(totals.skipped_steps)},
                  {"out_of_memory", static_cast<double>(totals.out_of_memory)}};
  if (config_.sync().mode() == v1::SYNC_MODE_ASYNC) figures["vtrace_rho"] = first_targets.vtrace_rho;
  return figures;
}

}  // namespace skein
