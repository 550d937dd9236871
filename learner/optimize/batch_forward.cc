// SPDX-License-Identifier: Apache-2.0
#include "learner/optimize/batch_forward.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <vector>

#include "learner/optimize/autocast.h"

namespace skein {
namespace {

// Rows of one forward pass over a whole batch: on the CPU, activations then stay in the cache.
constexpr int64_t kRowsCpu = 1024;
constexpr int64_t kRowsGpu = 65536;

}  // namespace

BatchForward::BatchForward(const v1::LearnerConfig& config, const ActorCritic& network, torch::Device device,
                           AcceleratedLoss* accelerated)
    : network_(network),
      device_(device),
      precision_(TrainingPrecision(config)),
      accelerated_(accelerated),
      memory_(device.is_cpu() ? kRowsCpu : kRowsGpu) {}

absl::StatusOr<torch::Tensor> BatchForward::Run(const torch::Tensor& input, const Function& function) {
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
    outputs.push_back(function(in).to(torch::kFloat32));
  };
  if (absl::Status s = memory_.Run(input.size(0), work); !s.ok()) return s;
  return torch::cat(outputs);
}

absl::StatusOr<torch::Tensor> BatchForward::Values(const torch::Tensor& input, torch::Device device) {
  if (input.size(0) == 0) return torch::empty({0}, device);
  if (accelerated_ != nullptr) return accelerated_->Values(input);
  const auto values = Run(input, [&](const torch::Tensor& in) { return network_.Value(in); });
  if (!values.ok()) return values.status();
  return values->to(device);
}

absl::StatusOr<torch::Tensor> BatchForward::PolicyHead(const torch::Tensor& obs) {
  if (obs.size(0) == 0) return torch::empty({0, network_.options().action_size});
  if (accelerated_ != nullptr) return accelerated_->PolicyHead(obs);
  const auto head = Run(obs, [&](const torch::Tensor& in) { return network_.PolicyHead(in); });
  if (!head.ok()) return head.status();
  return head->cpu();
}

MemoryRun BatchForward::Remember(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& begins,
                                 const torch::Tensor& state) {
  if (accelerated_ != nullptr) return accelerated_->Remember(cell, input, begins, state);
  const torch::NoGradGuard no_grad;
  const ScopedAutocast autocast(device_, precision_);
  return RunMemory(cell, input, begins, state);
}

}  // namespace skein
