// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/philox.h"
#include "learner/algorithm/advantage.h"
#include "learner/algorithm/vtrace.h"
#include "model/distribution.h"

namespace skein {
namespace {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

constexpr double kEpsilon = 1e-8;
constexpr double kKlFactor = 1.5;
constexpr double kMinLr = 1e-6;
constexpr double kMaxLr = 1e-2;
// Rows of one forward pass over the whole batch: activations then stay in the cache.
constexpr int64_t kForwardRows = 1024;

std::vector<torch::Tensor> Parameters(const ActorCritic& network) {
  std::vector<torch::Tensor> tensors;
  for (const auto& [name, parameter] : network.AllParameters()) tensors.push_back(parameter);
  return tensors;
}

bool AllFinite(const torch::Tensor& tensor) { return torch::isfinite(tensor.sum()).item<bool>(); }

// Advantages with zero mean and unit variance within each minibatch: `cut` divides the shuffled `order` into these.
torch::Tensor NormalizedAdvantages(const torch::Tensor& advantage, const torch::Tensor& order,
                                   const std::vector<int64_t>& cut) {
  torch::Tensor normalized = torch::empty_like(advantage);
  const float* in = advantage.data_ptr<float>();
  const int64_t* index = order.data_ptr<int64_t>();
  float* out = normalized.data_ptr<float>();
  for (size_t i = 0; i + 1 < cut.size(); ++i) {
    const double size = static_cast<double>(cut[i + 1] - cut[i]);
    double sum = 0, squares = 0;
    for (int64_t k = cut[i]; k < cut[i + 1]; ++k) sum += in[index[k]];
    const double mean = sum / size;
    for (int64_t k = cut[i]; k < cut[i + 1]; ++k) squares += (in[index[k]] - mean) * (in[index[k]] - mean);
    const double scale = 1 / (std::sqrt(squares / size) + kEpsilon);
    for (int64_t k = cut[i]; k < cut[i + 1]; ++k) out[index[k]] = static_cast<float>((in[index[k]] - mean) * scale);
  }
  return normalized;
}

torch::Tensor Scalar(double value) { return torch::full({1}, value, torch::kFloat64); }

void AppendMoments(const std::string& name, const RunningMoments& moments, NamedTensors& state) {
  state.emplace_back(name + ".count", Scalar(moments.count()));
  state.emplace_back(name + ".mean", moments.mean().clone());
  state.emplace_back(name + ".variance", moments.variance().clone());
}

absl::Status CheckSameLayout(const NamedTensors& got, const NamedTensors& want, const std::string& where) {
  for (size_t i = 0; i < std::max(got.size(), want.size()); ++i) {
    if (i >= got.size()) return absl::InvalidArgumentError(absl::StrCat(where, ": ", want[i].first, " is missing"));
    if (i >= want.size()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", got[i].first, " is unknown to this run"));
    }
    if (got[i].first != want[i].first) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": got ", got[i].first, " where ", want[i].first,
                                                     " was expected; the network or environment differs"));
    }
    if (got[i].second.sizes() != want[i].second.sizes()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", got[i].first, " has shape [",
                                                     absl::StrJoin(got[i].second.sizes(), ", "), "], want [",
                                                     absl::StrJoin(want[i].second.sizes(), ", "), "]"));
    }
    if (got[i].second.scalar_type() != want[i].second.scalar_type()) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", got[i].first, " has dtype ",
                                                     torch::toString(got[i].second.scalar_type()), ", want ",
                                                     torch::toString(want[i].second.scalar_type())));
    }
  }
  return absl::OkStatus();
}

}  // namespace

double AdaptLearningRate(double lr, double kl, double kl_target) {
  if (kl > 2 * kl_target) return std::max(kMinLr, lr / kKlFactor);
  if (kl < kl_target / 2) return std::min(kMaxLr, lr * kKlFactor);
  return lr;
}

Ppo::Ppo(const v1::RunConfig& config, const ActorCriticOptions& network, uint64_t seed)
    : config_(config),
      seed_(seed),
      network_(std::make_shared<ActorCritic>(network, seed)),
      optimizer_(Parameters(*network_), config.ppo().adam_epsilon()),
      fused_(FusedGradient::Supports(*network_) ? std::make_unique<FusedGradient>(*network_) : nullptr),
      obs_moments_(network.obs_size),
      return_moments_(1),
      lr_(config.ppo().lr()),
      loss_config_(config.ppo()) {}

ObsScale Ppo::obs_scale() const {
  return config_.model().normalize_observations() ? ObsScale::From(obs_moments_)
                                                  : ObsScale::Identity(network_->options().obs_size);
}

torch::Tensor Ppo::Values(const torch::Tensor& obs) const {
  if (fused_ != nullptr) return fused_->Values(obs);
  const torch::NoGradGuard no_grad;
  torch::Tensor values = torch::empty({obs.size(0)});
  for (int64_t first = 0; first < obs.size(0); first += kForwardRows) {
    const int64_t rows = std::min(kForwardRows, obs.size(0) - first);
    values.narrow(0, first, rows).copy_(network_->Value(obs.narrow(0, first, rows)));
  }
  return values;
}

torch::Tensor Ppo::LogProb(const Minibatch& samples) const {
  const torch::NoGradGuard no_grad;
  const torch::Tensor head = fused_ != nullptr ? fused_->PolicyHead(samples.obs) : network_->PolicyHead(samples.obs);
  return network_->options().discrete ? CategoricalLogProb(head, samples.action)
                                      : GaussianLogProb(head, network_->log_std(), samples.action);
}

Ppo::TargetFigures Ppo::ComputeTargets(const Batch& batch, const Rows& rows, Minibatch& samples) {
  const torch::NoGradGuard no_grad;
  const v1::PpoConfig& ppo = config_.ppo();
  const int64_t columns = batch.reward.size(1), size = batch.reward.numel();
  const torch::Tensor values = Values(rows.obs);
  samples.old_value = values.narrow(0, 0, size);
  torch::Tensor next_value = values.narrow(0, columns, size).clone();
  if (rows.final_obs.size(0) > 0) next_value.index_copy_(0, batch.final_index, Values(rows.final_obs));

  const bool normalize = config_.model().normalize_returns();
  const double scale = normalize ? std::sqrt(return_moments_.variance().item<double>() + kEpsilon) : 1.0;
  const torch::Tensor value = samples.old_value * scale;
  const AdvantageInput input{batch.reward, value.view_as(batch.reward), (next_value * scale).view_as(batch.reward),
                             batch.terminated, torch::logical_or(batch.terminated, batch.truncated)};
  TargetFigures figures;
  torch::Tensor returns;
  if (config_.sync().mode() == v1::SYNC_MODE_ASYNC) {
    const torch::Tensor log_ratio = (LogProb(samples) - samples.log_prob).view_as(batch.reward);
    const VtraceTargets targets =
        Vtrace(input, log_ratio, {ppo.gamma(), ppo.gae_lambda(), ppo.vtrace_rho_max(), ppo.vtrace_c_max()});
    samples.advantage = targets.advantage.view({size});
    returns = targets.target.view({size});
    figures.vtrace_rho = targets.mean_rho;
  } else {
    samples.advantage = GeneralizedAdvantage(input, ppo.gamma(), ppo.gae_lambda()).view({size});
    returns = samples.advantage + value;
  }
  samples.value_target = returns / scale;
  // What is not finite is skipped in training and must not stay in the statistics for ever either.
  if (normalize && AllFinite(returns)) return_moments_.Update(returns.view({size, 1}));
  const double spread = returns.var(/*unbiased=*/false).item<double>();
  if (spread > 0) figures.explained_variance = 1 - (returns - value).var(/*unbiased=*/false).item<double>() / spread;
  return figures;
}

torch::Tensor Ppo::Permutation(int64_t size, uint64_t iteration, uint32_t epoch) const {
  RandomStream random(seed_, RandomPurpose::kPermutation, iteration, epoch);
  torch::Tensor order = torch::empty({size}, torch::kInt64);
  int64_t* begin = order.data_ptr<int64_t>();
  std::iota(begin, begin + size, int64_t{0});
  for (int64_t i = size - 1; i > 0; --i) std::swap(begin[i], begin[random.Below(static_cast<uint32_t>(i + 1))]);
  return order;
}

Ppo::Figures Ppo::Update(const Batch& batch, double progress, uint64_t iteration) {
  const v1::PpoConfig& ppo = config_.ppo();
  const int64_t steps = batch.reward.size(0), size = batch.reward.numel();
  const int64_t obs_size = network_->options().obs_size;
  const double left = std::max(0.0, 1 - progress);
  if (ppo.lr_schedule() == v1::LEARNING_RATE_SCHEDULE_LINEAR) lr_ = ppo.lr() * left;
  if (ppo.clip_schedule() == v1::SCHEDULE_LINEAR) loss_config_.set_clip(ppo.clip() * left);
  if (ppo.entropy_schedule() == v1::SCHEDULE_LINEAR) {
    loss_config_.set_entropy_coefficient(ppo.entropy_coefficient() * left);
  }

  Rows rows;
  Minibatch samples;
  {
    const torch::NoGradGuard no_grad;
    const ObsScale scale = obs_scale();
    rows.obs = scale.Apply(batch.obs).view({-1, obs_size});
    rows.final_obs = batch.final_obs.defined() ? scale.Apply(batch.final_obs) : torch::empty({0, obs_size});
    samples.obs = rows.obs.narrow(0, 0, size);
    samples.action = network_->options().discrete ? batch.action.contiguous().view({size})
                                                  : batch.action.contiguous().view({size, -1});
    samples.log_prob = batch.log_prob.contiguous().view({size});
  }

  Totals totals;
  TargetFigures first_targets;
  double last_kl = 0;
  int64_t epochs = 0;
  // Where each minibatch begins in the shuffled samples, and the end; the last one takes the remainder too.
  std::vector<int64_t> cut;
  for (int64_t i = 0; i < std::max<int64_t>(1, size / ppo.minibatch_size()); ++i) {
    cut.push_back(i * ppo.minibatch_size());
  }
  cut.push_back(size);
  for (uint32_t epoch = 0; epoch < ppo.epochs(); ++epoch) {
    if (epoch == 0 || ppo.recompute_advantages()) {
      const TargetFigures targets = ComputeTargets(batch, rows, samples);
      if (epoch == 0) first_targets = targets;
    }
    const torch::Tensor order = Permutation(size, iteration, epoch);
    Minibatch in_epoch = samples;
    if (ppo.normalize_advantages()) in_epoch.advantage = NormalizedAdvantages(samples.advantage, order, cut);
    const Totals before = totals;
    for (size_t i = 0; i + 1 < cut.size(); ++i) {
      TrainMinibatch(in_epoch, order.narrow(0, cut[i], cut[i + 1] - cut[i]), totals);
    }
    ++epochs;
    const int64_t taken = totals.gradient_steps - before.gradient_steps;
    if (taken == 0) continue;
    last_kl = (totals.loss.kl - before.loss.kl) / static_cast<double>(taken);
    if (ppo.kl_stop() > 0 && last_kl > ppo.kl_stop()) break;
  }
  if (config_.model().normalize_observations() && AllFinite(batch.obs)) {
    obs_moments_.Update(batch.obs.narrow(0, 0, steps).reshape({-1, obs_size}));
  }

  const double used_lr = lr_;
  if (ppo.lr_schedule() == v1::LEARNING_RATE_SCHEDULE_KL_ADAPTIVE && totals.gradient_steps > 0) {
    lr_ = AdaptLearningRate(lr_, last_kl, ppo.kl_target());
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
                  {"skipped_steps", static_cast<double>(totals.skipped_steps)}};
  if (config_.sync().mode() == v1::SYNC_MODE_ASYNC) figures["vtrace_rho"] = first_targets.vtrace_rho;
  return figures;
}

void Ppo::TrainMinibatch(const Minibatch& samples, const torch::Tensor& index, Totals& totals) {
  const LossValues loss = ComputeGradient(samples, index);
  const double norm = optimizer_.GradientNorm();
  if (!std::isfinite(loss.total) || !std::isfinite(norm)) {
    ++totals.skipped_steps;
    return;
  }
  const double max_norm = config_.ppo().max_grad_norm();
  optimizer_.Step(lr_, max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0);
  totals.loss.policy += loss.policy;
  totals.loss.value += loss.value;
  totals.loss.entropy += loss.entropy;
  totals.loss.kl += loss.kl;
  totals.loss.clip_fraction += loss.clip_fraction;
  totals.grad_norm += norm;
  ++totals.gradient_steps;
}

LossValues Ppo::ComputeGradient(const Minibatch& samples, const torch::Tensor& index) {
  optimizer_.gradient().zero_();
  if (fused_ != nullptr) return fused_->Compute(samples, index.data_ptr<int64_t>(), index.numel(), loss_config_);
  const Minibatch minibatch = samples.Select(index);
  const auto [head, value] = network_->PolicyHeadAndValue(minibatch.obs, minibatch.obs);
  const bool discrete = network_->options().discrete;
  const torch::Tensor log_prob = discrete ? CategoricalLogProb(head, minibatch.action)
                                          : GaussianLogProb(head, network_->log_std(), minibatch.action);
  const torch::Tensor entropy = discrete ? CategoricalEntropy(head) : GaussianEntropy(network_->log_std());
  const LossTerms terms = PpoLoss(log_prob, minibatch.log_prob, minibatch.advantage, value, minibatch.old_value,
                                  minibatch.value_target, entropy, loss_config_);
  terms.total.backward();
  return {terms.total.item<double>(),   terms.policy.item<double>(), terms.value.item<double>(),
          terms.entropy.item<double>(), terms.kl.item<double>(),     terms.clip_fraction.item<double>()};
}

NamedTensors Ppo::ModelState() const {
  NamedTensors state;
  for (const auto& [name, parameter] : network_->AllParameters()) state.emplace_back(name, parameter.detach().clone());
  AppendMoments("obs_normalizer", obs_moments_, state);
  AppendMoments("return_normalizer", return_moments_, state);
  return state;
}

NamedTensors Ppo::OptimizerState() const {
  return {{"adam.step", torch::full({1}, optimizer_.steps(), torch::kInt64)},
          {"adam.exp_avg", optimizer_.exp_avg().clone()},
          {"adam.exp_avg_sq", optimizer_.exp_avg_sq().clone()},
          {"lr", Scalar(lr_)}};
}

absl::Status Ppo::Restore(const NamedTensors& model, const NamedTensors& optimizer) {
  absl::Status status = CheckSameLayout(model, ModelState(), "model");
  if (status.ok()) status = CheckSameLayout(optimizer, OptimizerState(), "optimizer");
  if (!status.ok()) return status;

  const torch::NoGradGuard no_grad;
  const auto parameters = network_->AllParameters();
  for (size_t i = 0; i < parameters.size(); ++i) torch::Tensor(parameters[i].second).copy_(model[i].second);
  const auto restore_moments = [&](size_t first, RunningMoments& moments) {
    moments.Restore(model[first].second.item<double>(), model[first + 1].second, model[first + 2].second);
  };
  restore_moments(parameters.size(), obs_moments_);
  restore_moments(parameters.size() + 3, return_moments_);
  optimizer_.Restore(optimizer[0].second.item<int64_t>(), optimizer[1].second, optimizer[2].second);
  lr_ = optimizer[3].second.item<double>();
  return absl::OkStatus();
}

}  // namespace skein
