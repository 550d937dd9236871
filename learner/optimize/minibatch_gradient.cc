// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/minibatch_gradient.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "learner/network/distribution.h"
#include "learner/optimize/autocast.h"

namespace skein {
namespace {

// Rows of one forward pass over a whole batch: on the CPU, activations then stay in the cache.
constexpr int64_t kForwardRowsCpu = 1024;
constexpr int64_t kForwardRowsGpu = 65536;

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

std::unique_ptr<GradientReducer> MakeReducer(const v1::LearnerConfig& config, const ActorCritic& network,
                                             FlatAdam* optimizer, Collective* collective) {
  if (collective == nullptr) return nullptr;
  std::vector<torch::Tensor> parameters;
  for (const auto& [name, parameter] : network.AllParameters()) parameters.push_back(parameter);
  const GradientReducer::Options options{config.bucket_mb(), config.gradient_precision() == v1::PRECISION_BF16};
  return std::make_unique<GradientReducer>(collective, optimizer->gradient(), parameters, options);
}

}  // namespace

MinibatchGradient::MinibatchGradient(const v1::LearnerConfig& config, const ActorCritic& network, FlatAdam* optimizer,
                                     Collective* collective)
    : network_(network),
      optimizer_(*optimizer),
      device_(optimizer->parameters().device()),
      precision_(config.precision() == v1::PRECISION_BF16 ? torch::kBFloat16 : torch::kFloat32),
      fused_(precision_ == torch::kFloat32 && FusedGradient::Supports(network)
                 ? std::make_unique<FusedGradient>(network, std::max(1, static_cast<int>(config.torch_threads())))
                 : nullptr),
      reducer_(MakeReducer(config, network, optimizer, collective)),
      memory_(config.micro_batch_size()),
      forward_memory_(device_.is_cpu() ? kForwardRowsCpu : kForwardRowsGpu) {}

absl::Status MinibatchGradient::Begin() {
  if (std::exchange(armed_, false)) {
    if (absl::Status s = reducer_->Interrupt(); !s.ok()) return s;
  }
  optimizer_.gradient().zero_();
  return absl::OkStatus();
}

LossTerms MinibatchGradient::Terms(const Minibatch& minibatch, const Pass& pass) const {
  torch::Tensor head, value;
  {
    const ScopedAutocast autocast(device_, precision_);
    std::tie(head, value) = network_.PolicyHeadAndValue(minibatch.obs, minibatch.value_input());
  }
  head = head.to(torch::kFloat32);
  value = value.to(torch::kFloat32);
  const bool discrete = network_.options().discrete;
  const torch::Tensor log_prob = discrete ? CategoricalLogProb(head, minibatch.action)
                                          : GaussianLogProb(head, network_.log_std(), minibatch.action);
  const torch::Tensor entropy = discrete ? CategoricalEntropy(head) : GaussianEntropy(network_.log_std());
  return PpoLoss(log_prob, minibatch.log_prob, minibatch.advantage, value, minibatch.old_value, minibatch.value_target,
                 entropy, pass.config, pass.coefficients);
}

absl::Status MinibatchGradient::Differentiate(const Minibatch& samples, const torch::Tensor& index,
                                              int64_t minibatch_size, const Pass& pass,
                                              const std::function<void()>& reset,
                                              const std::function<void(const LossTerms&, double)>& add) {
  MemoryLimit::Work work;
  work.begin = [&] {
    reset();
    return Begin();
  };
  work.piece = [&](int64_t first, int64_t rows, bool last) {
    const LossTerms terms =
        Terms(index.defined() ? samples.Select(index.narrow(0, first, rows)) : samples.Narrow(first, rows), pass);
    const double weight = static_cast<double>(rows) / static_cast<double>(minibatch_size);
    if (last && reducer_ != nullptr) {
      reducer_->Arm();
      armed_ = true;
    }
    // Not a number where the loss is not finite, whatever its gradient is.
    terms.total.backward(terms.total.detach() * 0 + weight);
    add(terms, weight);
  };
  const int64_t rows = index.defined() ? index.numel() : samples.size();
  if (absl::Status s = pass.recorded ? memory_.RunOnce(rows, work) : memory_.Run(rows, work); !s.ok()) return s;
  armed_ = false;
  return reducer_ == nullptr ? absl::OkStatus() : reducer_->Finish();
}

absl::Status MinibatchGradient::DifferentiateFused(const Minibatch& samples, const torch::Tensor& index,
                                                   int64_t minibatch_size, const v1::PpoConfig& config,
                                                   LossValues* loss) {
  MemoryLimit::Work work;
  work.begin = [&] {
    *loss = {};
    return Begin();
  };
  work.piece = [&](int64_t first, int64_t rows, bool) {
    *loss += fused_->Compute(samples, index.data_ptr<int64_t>() + first, rows, config, minibatch_size);
  };
  if (absl::Status s = memory_.Run(index.numel(), work); !s.ok()) return s;
  if (!std::isfinite(loss->total)) optimizer_.gradient()[0] = kNotANumber;
  armed_ = false;
  return reducer_ == nullptr ? absl::OkStatus() : reducer_->Finish();
}

absl::Status MinibatchGradient::Compute(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                                        const v1::PpoConfig& config, LossValues* loss) {
  if (fused_ != nullptr) return DifferentiateFused(samples, index, minibatch_size, config, loss);
  return Differentiate(
      samples, index, minibatch_size, Pass{config}, [&] { *loss = {}; },
      [&](const LossTerms& terms, double weight) {
        *loss += {terms.total.item<double>() * weight, terms.policy.item<double>() * weight,
                  terms.value.item<double>() * weight, terms.entropy.item<double>() * weight,
                  terms.kl.item<double>() * weight,    terms.clip_fraction.item<double>() * weight};
      });
}

absl::Status MinibatchGradient::Enqueue(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                                        const v1::PpoConfig& config, torch::Tensor* loss,
                                        const LossCoefficients& coefficients, bool recorded) {
  if (fused_ != nullptr) {
    LossValues values;
    const absl::Status status = DifferentiateFused(samples, index, minibatch_size, config, &values);
    *loss =
        torch::tensor(std::vector<double>{values.policy, values.value, values.entropy, values.kl, values.clip_fraction},
                      torch::kFloat64);
    return status;
  }
  const auto options = torch::TensorOptions().dtype(torch::kFloat64).device(device_);
  return Differentiate(
      samples, index, minibatch_size, Pass{config, coefficients, recorded}, [&] { *loss = torch::zeros({5}, options); },
      [&](const LossTerms& terms, double weight) {
        const torch::NoGradGuard no_grad;
        loss->add_(
            torch::stack({terms.policy, terms.value, terms.entropy, terms.kl, terms.clip_fraction}).to(torch::kFloat64),
            weight);
      });
}

absl::StatusOr<torch::Tensor> MinibatchGradient::Forward(const torch::Tensor& input, const Network& network) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> outputs;
  MemoryLimit::Work work;
  work.begin = [&] {
    outputs.clear();
    return absl::OkStatus();
  };
  work.piece = [&](int64_t first, int64_t rows, bool) {
    const torch::Tensor in = input.narrow(0, first, rows).to(device_);
    const ScopedAutocast autocast(device_, precision_);
    outputs.push_back(network(in).to(torch::kFloat32));
  };
  if (absl::Status s = forward_memory_.Run(input.size(0), work); !s.ok()) return s;
  return torch::cat(outputs);
}

absl::StatusOr<torch::Tensor> MinibatchGradient::Values(const torch::Tensor& input, torch::Device device) {
  if (input.size(0) == 0) return torch::empty({0}, device);
  if (fused_ != nullptr) return fused_->Values(input);
  const auto values = Forward(input, [&](const torch::Tensor& in) { return network_.Value(in); });
  if (!values.ok()) return values.status();
  return values->to(device);
}

absl::StatusOr<torch::Tensor> MinibatchGradient::PolicyHead(const torch::Tensor& obs) {
  if (obs.size(0) == 0) return torch::empty({0, network_.options().action_size});
  if (fused_ != nullptr) return fused_->PolicyHead(obs);
  const auto head = Forward(obs, [&](const torch::Tensor& in) { return network_.PolicyHead(in); });
  if (!head.ok()) return head.status();
  return head->cpu();
}

}  // namespace skein
