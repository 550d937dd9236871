// SPDX-License-Identifier: Apache-2.0
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include "base/telemetry/log.h"
#include "learner/algorithm/ppo/ppo.h"
#include "learner/optimize/across_ranks.h"

// The gradient steps of Ppo: waited for, enqueued or recorded.
namespace skein {
void Ppo::RecordSteps(std::unique_ptr<Recorder> recorder) {
  if (recorder == nullptr) {
    std::string why = WhyNotRecorded(config_.learner(), collective_ != nullptr, device_);
    if (why.empty()) {
      recorder = MakeCudaRecorder(device_);
      if (recorder == nullptr) why = "this build knows no CUDA";
    }
    if (recorder == nullptr) {
      spdlog::info("learner.cuda_graph is ignored: {}", why);
      return;
    }
  }
  // What schedules change must not come from the host: hence config_, as it was at the beginning.
  graph_ = std::make_unique<StepGraph>(std::move(recorder), [this](const StepGraph::Inputs& in, bool recorded) {
    torch::Tensor loss;
    if (absl::Status s =
            gradient_.Enqueue(in.samples, in.index, in.index.numel(), config_.ppo(), &loss, in.coefficients, recorded);
        !s.ok()) {
      return s;
    }
    EnqueueStep(loss, in.lr);
    return absl::OkStatus();
  });
}

absl::Status Ppo::TrainEpoch(const Minibatch& samples, const MinibatchOrder& order, Totals& totals) {
  const torch::Tensor rows = order.rows.to(samples.obs.device());
  const auto index = [&](size_t i) { return rows.narrow(0, order.begin[i], order.begin[i + 1] - order.begin[i]); };
  const size_t count = order.minibatches();
  if (enqueues_) {
    if (!enqueued_.defined()) enqueued_ = torch::empty({8}, torch::TensorOptions(torch::kFloat64).device(device_));
    enqueued_.zero_();
  }
  if (!prefetches()) {
    if (graph_ != nullptr && count > 0) graph_->Load(samples, order.size[0], lr_, loss_config_);
    for (size_t i = 0; i < count; ++i) {
      if (order.size[i] == 0) continue;  // Nobody took part.
      if (graph_ != nullptr) {
        const auto done = graph_->Run(index(i));
        if (!done.ok()) return done.status();
        if (*done) continue;
      }
      if (absl::Status s = TrainMinibatch(samples, index(i), order.size[i], totals); !s.ok()) return s;
    }
    return absl::OkStatus();
  }
  std::deque<DeviceCopier::Pending> ahead;
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    for (; next < count && next <= i + config_.learner().prefetch_depth(); ++next) {
      std::vector<torch::Tensor> tensors;
      samples.Select(index(next)).Each([&](const torch::Tensor& tensor) { return tensors.emplace_back(tensor); });
      ahead.push_back(copier_.Start(tensors));
    }
    const std::vector<torch::Tensor> copies = copier_.Finish(std::move(ahead.front()));
    ahead.pop_front();
    if (order.size[i] == 0) continue;
    auto copy = copies.begin();
    const Minibatch minibatch = samples.Each([&](const torch::Tensor&) { return *copy++; });
    if (absl::Status s = TrainMinibatch(minibatch, torch::Tensor(), order.size[i], totals); !s.ok()) return s;
  }
  return absl::OkStatus();
}

void Ppo::EnqueueStep(const torch::Tensor& loss, const torch::Tensor& lr) {
  const FlatAdam::Enqueued step = optimizer_.EnqueueStep(lr, config_.ppo().max_grad_norm());
  const torch::Tensor taken = step.taken.to(torch::kFloat64);
  const torch::Tensor terms = torch::cat({loss, step.norm.view({1})}).masked_fill(step.taken.logical_not(), 0);
  enqueued_.add_(torch::cat({terms, taken.view({1}), (1 - taken).view({1})}));
}

absl::Status Ppo::TrainMinibatch(const Minibatch& samples, const torch::Tensor& index, int64_t size, Totals& totals) {
  const double max_norm = config_.ppo().max_grad_norm();
  if (enqueues_) {
    torch::Tensor loss;
    if (absl::Status s = gradient_.Enqueue(samples, index, size, loss_config_, &loss); !s.ok()) return s;
    EnqueueStep(loss, torch::full({}, lr_, loss.options()));
    return absl::OkStatus();
  }
  LossValues loss;
  if (absl::Status s = gradient_.Compute(samples, index, size, loss_config_, &loss); !s.ok()) return s;
  const double norm = optimizer_.GradientNorm();
  if (!std::isfinite(norm)) {
    ++totals.skipped_steps;
    return absl::OkStatus();
  }
  optimizer_.Step(lr_, max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0);
  totals.loss += loss;
  totals.grad_norm += norm;
  ++totals.gradient_steps;
  return absl::OkStatus();
}

absl::Status Ppo::Settle(const Totals& before, Totals& totals) {
  LossValues& loss = totals.loss;
  if (enqueues_) {
    const torch::Tensor enqueued = enqueued_.cpu();
    const double* const sum = enqueued.data_ptr<double>();
    loss += {0, sum[0], sum[1], sum[2], sum[3], sum[4]};
    totals.grad_norm += sum[5];
    totals.gradient_steps += static_cast<int64_t>(sum[6]);
    totals.skipped_steps += static_cast<int64_t>(sum[7]);
  }
  const int64_t out_of_memory = gradient_.out_of_memory() - out_of_memory_;
  out_of_memory_ += out_of_memory;
  if (collective_ == nullptr) {
    totals.out_of_memory += out_of_memory;
    return absl::OkStatus();
  }
  const LossValues& then = before.loss;
  std::vector<double> parts = {loss.policy - then.policy,
                               loss.value - then.value,
                               loss.entropy - then.entropy,
                               loss.kl - then.kl,
                               loss.clip_fraction - then.clip_fraction,
                               static_cast<double>(out_of_memory)};
  if (absl::Status s = SumOverRanks(collective_, &parts); !s.ok()) return s;
  loss = then;
  loss += {0, parts[0], parts[1], parts[2], parts[3], parts[4]};
  totals.out_of_memory += static_cast<int64_t>(parts[5]);
  return absl::OkStatus();
}

}  // namespace skein
