// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/gradient_steps.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/telemetry/log.h"
#include "learner/optimize/across_ranks.h"

namespace skein {
namespace {

std::vector<torch::Tensor> Parameters(const ActorCritic& network) {
  std::vector<torch::Tensor> tensors;
  for (const auto& [name, parameter] : network.AllParameters()) tensors.push_back(parameter);
  return tensors;
}

torch::Tensor Rows(const torch::Tensor& rows, const MinibatchOrder& order, size_t minibatch) {
  return rows.narrow(0, order.begin[minibatch], order.begin[minibatch + 1] - order.begin[minibatch]);
}

}  // namespace

GradientSteps::GradientSteps(const Options& options, const ActorCritic& network, const Loss& loss,
                             Collective* collective, torch::Device device)
    : options_(options),
      loss_(loss),
      stats_(loss.stats().size()),
      collective_(collective),
      device_(device),
      adam_(Parameters(network), options.adam_epsilon),
      gradient_(options.learner, Parameters(network), loss, &adam_, collective),
      forward_(options.learner, network, device, gradient_.accelerated()),
      copier_(device),
      enqueues_(!device.is_cpu()) {
  if (options.learner.cuda_graph()) RecordSteps(nullptr);
  if (!device.is_cuda()) return;
  at::globalContext().setAllowTF32CuBLAS(options.learner.tf32());
  at::globalContext().setAllowTF32CuDNN(options.learner.tf32());
  at::globalContext().setBenchmarkCuDNN(options.learner.cudnn_benchmark());
}

void GradientSteps::RecordSteps(std::unique_ptr<Recorder> recorder) {
  if (recorder == nullptr) {
    std::string why = WhyNotRecorded(options_.learner, collective_ != nullptr, device_);
    if (why.empty()) {
      recorder = MakeCudaRecorder(device_);
      if (recorder == nullptr) why = "this build knows no CUDA";
    }
    if (recorder == nullptr) {
      spdlog::info("learner.cuda_graph is ignored: {}", why);
      return;
    }
  }
  graph_ = std::make_unique<StepGraph>(std::move(recorder), [this](const StepGraph::Inputs& in, bool recorded) {
    torch::Tensor stats;
    if (absl::Status s = gradient_.Enqueue(in.samples, in.index, in.index.numel(), &stats, in.scheduled, recorded);
        !s.ok()) {
      return s;
    }
    EnqueueStep(stats, in.lr);
    return absl::OkStatus();
  });
}

GradientSteps::Totals GradientSteps::NoSteps() const {
  Totals totals;
  totals.loss.stats.resize(stats_);
  return totals;
}

absl::Status GradientSteps::TrainEpoch(const Minibatch& samples, const MinibatchOrder& order, double lr,
                                       Totals* totals) {
  if (enqueues_) {
    if (!enqueued_.defined()) {
      enqueued_ =
          torch::empty({static_cast<int64_t>(stats_) + 3}, torch::TensorOptions(torch::kFloat64).device(device_));
    }
    enqueued_.zero_();
  }
  if (prefetches()) return TrainAhead(samples, order, lr, totals);
  const torch::Tensor rows = order.rows.to(samples["obs"].device());
  if (graph_ != nullptr && order.minibatches() > 0) graph_->Load(samples, order.size[0], lr, loss_.scheduled());
  for (size_t i = 0; i < order.minibatches(); ++i) {
    if (order.size[i] == 0) continue;  // No agent was alive.
    const torch::Tensor index = Rows(rows, order, i);
    if (graph_ != nullptr) {
      const auto done = graph_->Run(index);
      if (!done.ok()) return done.status();
      if (*done) continue;
    }
    if (absl::Status s = TrainMinibatch(samples, index, order.size[i], lr, totals); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status GradientSteps::TrainAhead(const Minibatch& samples, const MinibatchOrder& order, double lr,
                                       Totals* totals) {
  const torch::Tensor rows = order.rows.to(samples["obs"].device());
  std::deque<DeviceCopier::Pending> ahead;
  size_t next = 0;
  for (size_t i = 0; i < order.minibatches(); ++i) {
    for (; next < order.minibatches() && next <= i + options_.learner.prefetch_depth(); ++next) {
      std::vector<torch::Tensor> tensors;
      samples.Select(Rows(rows, order, next)).Each([&](const torch::Tensor& tensor) {
        return tensors.emplace_back(tensor);
      });
      ahead.push_back(copier_.Start(tensors));
    }
    const std::vector<torch::Tensor> copies = copier_.Finish(std::move(ahead.front()));
    ahead.pop_front();
    if (order.size[i] == 0) continue;
    auto copy = copies.begin();
    const Minibatch minibatch = samples.Each([&](const torch::Tensor&) { return *copy++; });
    if (absl::Status s = TrainMinibatch(minibatch, torch::Tensor(), order.size[i], lr, totals); !s.ok()) return s;
  }
  return absl::OkStatus();
}

void GradientSteps::EnqueueStep(const torch::Tensor& stats, const torch::Tensor& lr) {
  const FlatAdam::Enqueued step = adam_.EnqueueStep(lr, options_.max_grad_norm);
  const torch::Tensor taken = step.taken.to(torch::kFloat64);
  const torch::Tensor terms = torch::cat({stats, step.norm.view({1})}).masked_fill(step.taken.logical_not(), 0);
  enqueued_.add_(torch::cat({terms, taken.view({1}), (1 - taken).view({1})}));
}

absl::Status GradientSteps::TrainMinibatch(const Minibatch& samples, const torch::Tensor& index, int64_t size,
                                           double lr, Totals* totals) {
  if (enqueues_) {
    torch::Tensor stats;
    if (absl::Status s = gradient_.Enqueue(samples, index, size, &stats); !s.ok()) return s;
    EnqueueStep(stats, torch::full({}, lr, stats.options()));
    return absl::OkStatus();
  }
  LossValues loss;
  if (absl::Status s = gradient_.Compute(samples, index, size, &loss); !s.ok()) return s;
  const double norm = adam_.GradientNorm(), max_norm = options_.max_grad_norm;
  if (!std::isfinite(norm)) {
    ++totals->skipped_steps;
    return absl::OkStatus();
  }
  adam_.Step(lr, max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0);
  totals->loss += loss;
  totals->grad_norm += norm;
  ++totals->gradient_steps;
  return absl::OkStatus();
}

absl::Status GradientSteps::Settle(const Totals& before, Totals* totals) {
  LossValues& loss = totals->loss;
  if (enqueues_) {
    const torch::Tensor enqueued = enqueued_.cpu();
    const double* const sum = enqueued.data_ptr<double>();
    loss += {0, std::vector<double>(sum, sum + stats_)};
    totals->grad_norm += sum[stats_];
    totals->gradient_steps += static_cast<int64_t>(sum[stats_ + 1]);
    totals->skipped_steps += static_cast<int64_t>(sum[stats_ + 2]);
  }
  const int64_t all = gradient_.memory().out_of_memory() + forward_.out_of_memory();
  const int64_t out_of_memory = all - std::exchange(out_of_memory_, all);
  if (collective_ == nullptr) {
    totals->out_of_memory += out_of_memory;
    return absl::OkStatus();
  }
  std::vector<double> parts;
  for (size_t i = 0; i < stats_; ++i) parts.push_back(loss.stats[i] - before.loss.stats[i]);
  parts.push_back(static_cast<double>(out_of_memory));
  if (absl::Status s = SumOverRanks(collective_, &parts); !s.ok()) return s;
  totals->out_of_memory += static_cast<int64_t>(parts.back());
  parts.pop_back();
  loss = before.loss;
  loss += {0, parts};
  return absl::OkStatus();
}

}  // namespace skein
