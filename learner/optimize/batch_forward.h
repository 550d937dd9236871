// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "learner/network/actor_critic.h"
#include "learner/optimize/loss.h"
#include "learner/optimize/memory_limit.h"
#include "skein/v1/config.pb.h"

namespace skein {

// Forward passes of the networks over a whole batch without gradients, in pieces that fit into memory. Not thread-safe.
// Errors: ResourceExhausted: out of memory with a single row.
class BatchForward {
 public:
  // `network` and `accelerated` must outlive this. If `accelerated` is not null, it computes in place of `network`.
  BatchForward(const v1::LearnerConfig& config, const ActorCritic& network, torch::Device device,
               AcceleratedLoss* accelerated);

  // Input of the value function [B, C] on any device -> values [B] on `device`.
  absl::StatusOr<torch::Tensor> Values(const torch::Tensor& input, torch::Device device = torch::kCPU);
  // obs [B, O] -> mean [B, D] (continuous) or logits [B, C] (discrete), on the CPU.
  absl::StatusOr<torch::Tensor> PolicyHead(const torch::Tensor& obs);

  // What a memory of the network gives, as RunMemory.
  MemoryRun Remember(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& begins,
                     const torch::Tensor& state);

  int64_t out_of_memory() const { return memory_.out_of_memory(); }

 private:
  using Function = std::function<torch::Tensor(const torch::Tensor&)>;
  absl::StatusOr<torch::Tensor> Run(const torch::Tensor& input, const Function& function);

  const ActorCritic& network_;
  const torch::Device device_;
  const torch::ScalarType precision_;
  AcceleratedLoss* const accelerated_;
  MemoryLimit memory_;
};

}  // namespace skein
