// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/ppo/ppo_objective.h"

#include <torch/types.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "learner/algorithm/ppo/fused_gradient.h"
#include "learner/algorithm/ppo/ppo_loss.h"
#include "learner/optimize/action_terms.h"

namespace skein {
namespace {

class FusedPpoLoss final : public AcceleratedLoss {
 public:
  FusedPpoLoss(const ActorCritic& network, int threads, const v1::PpoConfig& config)
      : gradient_(network, threads), config_(config) {}

  LossValues Differentiate(const Minibatch& samples, const int64_t* index, int64_t size,
                           int64_t minibatch_size) override {
    const PpoLossValues loss = gradient_.Compute(samples, index, size, config_, minibatch_size);
    return {loss.total, {loss.policy, loss.value, loss.entropy, loss.kl, loss.clip_fraction}};
  }
  torch::Tensor Values(const torch::Tensor& input) override { return gradient_.Values(input); }
  torch::Tensor PolicyHead(const torch::Tensor& obs) override { return gradient_.PolicyHead(obs); }
  MemoryRun Remember(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& begins,
                     const torch::Tensor& state) override {
    return gradient_.Remember(cell, input, begins, state);
  }

 private:
  FusedGradient gradient_;
  const v1::PpoConfig& config_;
};

}  // namespace

PpoObjective::PpoObjective(const v1::PpoConfig& config, const ActorCritic& network, torch::ScalarType precision)
    : config_(config), network_(network), precision_(precision), now_(config) {}

void PpoObjective::SetSettings(const v1::PpoConfig& config) {
  for (v1::PpoConfig* const settings : {&config_, &now_}) {
    settings->set_clip(config.clip());
    settings->set_entropy_coefficient(config.entropy_coefficient());
  }
}

void PpoObjective::SetSchedules(double progress) {
  const double left = std::max(0.0, 1 - progress);
  if (config_.clip_schedule() == v1::SCHEDULE_LINEAR) now_.set_clip(config_.clip() * left);
  if (config_.entropy_schedule() == v1::SCHEDULE_LINEAR) {
    now_.set_entropy_coefficient(config_.entropy_coefficient() * left);
  }
}

std::vector<double> PpoObjective::scheduled() const {
  return {1.0 - now_.clip(), 1.0 + now_.clip(), now_.clip(), now_.entropy_coefficient()};
}

Loss::Terms PpoObjective::Compute(const Minibatch& samples, const std::vector<torch::Tensor>& scheduled) const {
  ActionTerms now = EvaluateActions(network_, samples, precision_);
  if (network_.memory().exists()) return ComputeSequences(samples, std::move(now));
  LossCoefficients coefficients;
  if (!scheduled.empty()) coefficients = {scheduled[0], scheduled[1], scheduled[2], scheduled[3]};
  const LossTerms terms = PpoLoss(now.log_prob, samples["log_prob"], samples["advantage"], now.value,
                                  samples["old_value"], samples["value_target"], now.entropy, now_, coefficients);
  return {terms.total, {terms.policy, terms.value, terms.entropy, terms.kl, terms.clip_fraction}};
}

Loss::Terms PpoObjective::ComputeSequences(const Minibatch& samples, ActionTerms now) const {
  std::map<std::string, torch::Tensor> rows;
  for (const char* const name : {"log_prob", "advantage", "old_value", "value_target"}) {
    rows[name] = samples[name].flatten();
  }
  int64_t count = now.value.numel();
  if (samples.has("valid")) {
    const torch::Tensor valid = samples["valid"].flatten().nonzero().view({-1});
    count = valid.numel();
    for (auto& [name, values] : rows) values = values.index_select(0, valid);
    for (torch::Tensor* const values : {&now.log_prob, &now.value, &now.entropy}) {
      if (values->dim() > 0) *values = values->index_select(0, valid);
    }
  }
  if (count == 0) {
    const torch::Tensor nothing = (now.value.sum() + now.log_prob.sum()) * 0;
    return {nothing, std::vector<torch::Tensor>(stats().size(), nothing.detach())};
  }
  LossTerms terms = PpoLoss(now.log_prob, rows["log_prob"], rows["advantage"], now.value, rows["old_value"],
                            rows["value_target"], now.entropy, now_);
  // Means over the steps, weighted so that a sequence counts for as many samples as it has.
  const double steps = static_cast<double>(count) / static_cast<double>(samples.size());
  for (torch::Tensor* const term :
       {&terms.total, &terms.policy, &terms.value, &terms.entropy, &terms.kl, &terms.clip_fraction}) {
    *term = *term * steps;
  }
  return {terms.total, {terms.policy, terms.value, terms.entropy, terms.kl, terms.clip_fraction}};
}

std::unique_ptr<AcceleratedLoss> PpoObjective::Accelerated(int threads) const {
  if (!FusedGradient::Supports(network_) || (network_.memory().exists() && config_.burn_in() > 0)) return nullptr;
  return std::make_unique<FusedPpoLoss>(network_, threads, now_);
}

}  // namespace skein
