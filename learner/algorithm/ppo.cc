// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "learner/algorithm/across_ranks.h"
#include "learner/algorithm/advantage.h"
#include "learner/algorithm/vtrace.h"
#include "model/distribution.h"

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
      obs_moments_(network.obs_size),
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
  const int64_t columns = batch.reward.size(1), size = batch.reward.numel();
  Data data{
      batch,
      {batch.reward.size(0), columns, batch.column_offset, batch.total_columns > 0 ? batch.total_columns : columns}};
  data.obs = batch.obs.reshape({-1, options.obs_size});
  data.final_obs = batch.final_obs.defined() ? batch.final_obs : torch::empty({0, options.obs_size});
  data.samples.action = options.discrete ? batch.action.contiguous().view({size})
                                         : batch.action.contiguous().view({size, options.action_size});
  data.samples.log_prob = batch.log_prob.contiguous().view({size});
  ObsScale scale = obs_scale();
  if (!device_.is_cpu() && !prefetches()) {
    const std::vector<torch::Tensor> copies = copier_.Finish(copier_.Start(
        {data.obs, data.final_obs, data.samples.action, data.samples.log_prob, scale.mean, scale.inv_std}));
    data.obs = copies[0];
    data.final_obs = copies[1];
    data.samples.action = copies[2];
    data.samples.log_prob = copies[3];
    scale = {copies[4], copies[5]};
  }
  data.obs = scale.Apply(data.obs);
  data.final_obs = scale.Apply(data.final_obs);
  data.samples.obs = data.obs.narrow(0, 0, size);
  return data;
}

absl::StatusOr<double> Ppo::CountReturns(const torch::Tensor& returns, const torch::Tensor& value) {
  // What is not finite is skipped in training and must not stay in the statistics for ever either.
  const bool normalize = config_.model().normalize_returns(), finite = AllFinite(returns);
  double spread = 0, rest = 0;
  if (collective_ == nullptr) {
    if (normalize && finite) return_moments_.Update(returns.view({-1, 1}));
    spread = returns.var(/*unbiased=*/false).item<double>();
    rest = (returns - value).var(/*unbiased=*/false).item<double>();
  } else {
    RunningMoments mine(2);
    mine.Update(torch::stack({returns, returns - value}, 1));
    const auto all = MergeOverRanks(collective_, {mine, finite});
    if (!all.ok()) return all.status();
    RunningMoments of_returns(1);
    of_returns.Restore(all->moments.count(), all->moments.mean().narrow(0, 0, 1),
                       all->moments.variance().narrow(0, 0, 1));
    if (normalize && all->finite) return_moments_.Merge(of_returns);
    spread = all->moments.variance()[0].item<double>();
    rest = all->moments.variance()[1].item<double>();
  }
  return spread > 0 ? 1 - rest / spread : 0;
}

absl::StatusOr<Ppo::Targets> Ppo::ComputeTargets(const Data& data) {
  const torch::NoGradGuard no_grad;
  const v1::PpoConfig& ppo = config_.ppo();
  const Batch& batch = data.batch;
  const int64_t columns = data.share.columns, size = data.share.size();
  const auto values = gradient_.Values(data.obs);
  if (!values.ok()) return values.status();
  Targets targets;
  targets.old_value = values->narrow(0, 0, size);
  torch::Tensor next_value = values->narrow(0, columns, size).clone();
  if (data.final_obs.size(0) > 0) {
    const auto final_values = gradient_.Values(data.final_obs);
    if (!final_values.ok()) return final_values.status();
    next_value.index_copy_(0, batch.final_index, *final_values);
  }

  const double scale =
      config_.model().normalize_returns() ? std::sqrt(return_moments_.variance().item<double>() + kEpsilon) : 1.0;
  const torch::Tensor value = targets.old_value * scale;
  const AdvantageInput input{batch.reward, value.view_as(batch.reward), (next_value * scale).view_as(batch.reward),
                             batch.terminated, torch::logical_or(batch.terminated, batch.truncated)};
  torch::Tensor returns;
  if (config_.sync().mode() == v1::SYNC_MODE_ASYNC) {
    const auto head = gradient_.PolicyHead(data.samples.obs);
    if (!head.ok()) return head.status();
    const torch::Tensor action = data.samples.action.cpu();
    const torch::Tensor log_prob = network_->options().discrete
                                       ? CategoricalLogProb(*head, action)
                                       : GaussianLogProb(*head, network_->log_std().cpu(), action);
    const torch::Tensor log_ratio = (log_prob - data.samples.log_prob.cpu()).view_as(batch.reward);
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
  const auto explained = CountReturns(returns, value);
  if (!explained.ok()) return explained.status();
  targets.figures.explained_variance = *explained;
  return targets;
}

absl::Status Ppo::CountObservations(const Batch& batch) {
  if (!config_.model().normalize_observations()) return absl::OkStatus();
  const torch::Tensor rows = batch.obs.narrow(0, 0, batch.reward.size(0)).reshape({-1, batch.obs.size(2)});
  const bool finite = AllFinite(batch.obs);
  if (collective_ == nullptr) {
    if (finite) obs_moments_.Update(rows);
    return absl::OkStatus();
  }
  RunningMoments mine(batch.obs.size(2));
  mine.Update(rows);
  const auto all = MergeOverRanks(collective_, {mine, finite});
  if (!all.ok()) return all.status();
  if (all->finite) obs_moments_.Merge(all->moments);
  return absl::OkStatus();
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

  const auto shuffle = [&](uint32_t epoch) {
    return ShuffleMinibatches(share, ppo.minibatch_size(), seed_, iteration, epoch);
  };
  Totals totals;
  Targets targets;
  TargetFigures first_targets;
  MinibatchOrder order = shuffle(0);
  double last_kl = 0;
  int64_t epochs = 0;
  for (uint32_t epoch = 0; epoch < ppo.epochs(); ++epoch) {
    if (epoch == 0 || ppo.recompute_advantages()) {
      auto computed = ComputeTargets(data);
      if (!computed.ok()) return computed.status();
      targets = *std::move(computed);
      if (epoch == 0) first_targets = targets.figures;
    }
    torch::Tensor advantage = targets.advantage;
    if (ppo.normalize_advantages()) {
      auto normalized = NormalizedAdvantages(advantage, order, collective_);
      if (!normalized.ok()) return normalized.status();
      advantage = *std::move(normalized);
    }
    const torch::Device device = data.samples.obs.device();
    data.samples.advantage = advantage.to(device);
    data.samples.old_value = targets.old_value.to(device);
    data.samples.value_target = targets.value_target.to(device);
    const Totals before = totals;
    if (absl::Status s = TrainEpoch(data.samples, order, totals); !s.ok()) return s;
    ++epochs;
    // While a GPU works on what it was given:
    if (epoch == 0) {
      if (absl::Status s = CountObservations(batch); !s.ok()) return s;
    }
    if (epoch + 1 < ppo.epochs()) order = shuffle(epoch + 1);
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
