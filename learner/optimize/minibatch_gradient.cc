// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/minibatch_gradient.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace skein {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

std::unique_ptr<AcceleratedLoss> MakeAccelerated(const v1::LearnerConfig& config, const Loss& loss) {
  if (config.precision() == v1::PRECISION_BF16) return nullptr;
  return loss.Accelerated(std::max(1, static_cast<int>(config.torch_threads())));
}

std::unique_ptr<GradientReducer> MakeReducer(const v1::LearnerConfig& config,
                                             const std::vector<torch::Tensor>& parameters, FlatAdam* optimizer,
                                             Collective* collective) {
  if (collective == nullptr) return nullptr;
  const GradientReducer::Options options{config.bucket_mb(), config.gradient_precision() == v1::PRECISION_BF16};
  return std::make_unique<GradientReducer>(collective, optimizer->gradient(), parameters, options);
}

}  // namespace

MinibatchGradient::MinibatchGradient(const v1::LearnerConfig& config, const std::vector<torch::Tensor>& parameters,
                                     const Loss& loss, FlatAdam* optimizer, Collective* collective)
    : loss_(loss),
      optimizer_(*optimizer),
      stats_(loss.stats().size()),
      accelerated_(MakeAccelerated(config, loss)),
      reducer_(MakeReducer(config, parameters, optimizer, collective)),
      memory_(config.micro_batch_size()) {}

LossValues MinibatchGradient::Zero() const { return {0, std::vector<double>(stats_)}; }

absl::Status MinibatchGradient::Begin() {
  if (std::exchange(armed_, false)) {
    if (absl::Status s = reducer_->Interrupt(); !s.ok()) return s;
  }
  optimizer_.gradient().zero_();
  return absl::OkStatus();
}

absl::Status MinibatchGradient::Differentiate(const Minibatch& samples, const torch::Tensor& index,
                                              int64_t minibatch_size, const Pass& pass,
                                              const std::function<void()>& reset,
                                              const std::function<void(const Loss::Terms&, double)>& add) {
  MemoryLimit::Work work;
  work.begin = [&] {
    reset();
    return Begin();
  };
  work.piece = [&](int64_t first, int64_t rows, bool last) {
    const Loss::Terms terms = loss_.Compute(
        index.defined() ? samples.Select(index.narrow(0, first, rows)) : samples.Narrow(first, rows), pass.scheduled);
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

absl::Status MinibatchGradient::DifferentiateAccelerated(const Minibatch& samples, const torch::Tensor& index,
                                                         int64_t minibatch_size, LossValues* loss) {
  MemoryLimit::Work work;
  work.begin = [&] {
    *loss = Zero();
    return Begin();
  };
  work.piece = [&](int64_t first, int64_t rows, bool) {
    *loss += accelerated_->Differentiate(samples, index.data_ptr<int64_t>() + first, rows, minibatch_size);
  };
  if (absl::Status s = memory_.Run(index.numel(), work); !s.ok()) return s;
  if (!std::isfinite(loss->total)) optimizer_.gradient()[0] = kNotANumber;
  armed_ = false;
  return reducer_ == nullptr ? absl::OkStatus() : reducer_->Finish();
}

absl::Status MinibatchGradient::Compute(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                                        LossValues* loss) {
  if (accelerated_ != nullptr) return DifferentiateAccelerated(samples, index, minibatch_size, loss);
  return Differentiate(
      samples, index, minibatch_size, {}, [&] { *loss = Zero(); },
      [&](const Loss::Terms& terms, double weight) {
        LossValues values{terms.total.item<double>() * weight, {}};
        for (const torch::Tensor& stat : terms.stats) values.stats.push_back(stat.item<double>() * weight);
        *loss += values;
      });
}

absl::Status MinibatchGradient::Enqueue(const Minibatch& samples, const torch::Tensor& index, int64_t minibatch_size,
                                        torch::Tensor* stats, const std::vector<torch::Tensor>& scheduled,
                                        bool recorded) {
  if (accelerated_ != nullptr) {
    LossValues values;
    const absl::Status status = DifferentiateAccelerated(samples, index, minibatch_size, &values);
    *stats = torch::tensor(values.stats, torch::kFloat64);
    return status;
  }
  const auto options = torch::TensorOptions().dtype(torch::kFloat64).device(optimizer_.parameters().device());
  return Differentiate(
      samples, index, minibatch_size, Pass{scheduled, recorded},
      [&] { *stats = torch::zeros({static_cast<int64_t>(stats_)}, options); },
      [&](const Loss::Terms& terms, double weight) {
        const torch::NoGradGuard no_grad;
        stats->add_(torch::stack(terms.stats).to(torch::kFloat64), weight);
      });
}

}  // namespace skein
