// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "learner/algorithm/ppo_loss.h"
#include "model/actor_critic.h"

namespace skein {

// The gradient of PpoLoss for two separate networks on the CPU, written out instead of recorded by autograd: for small
// networks most of an update is autograd's bookkeeping.   Minibatch -> Compute -> parameters' grad()
// Equal to autograd up to rounding. Not thread-safe.
class FusedGradient {
 public:
  static bool Supports(const ActorCritic& network);

  // The parameters' grad() must be defined; both must stay where they are in memory. REQUIRES: Supports(network).
  explicit FusedGradient(const ActorCritic& network);

  // Adds to the grad() of every parameter. Returns the loss. REQUIRES: contiguous rows.
  LossValues Compute(const Minibatch& batch, const v1::PpoConfig& config);

  // obs [B, O] -> the value function [B], without gradients.
  torch::Tensor Values(const torch::Tensor& obs);

 private:
  struct Layer {
    torch::Tensor weight, weight_t, bias;  // [out, in], [in, out], [out]
    torch::Tensor grad_weight, grad_bias;
  };
  // What one stack of layers writes for B rows; the last entry belongs to its head.
  struct Buffers {
    std::vector<torch::Tensor> output;  // After the activation.
    std::vector<torch::Tensor> delta;   // Gradient by what goes into the activation.
    std::vector<torch::Tensor> delta_t;
  };
  struct Workspace {
    int64_t rows = 0;
    Buffers policy, value;
    torch::Tensor ones;  // [rows]
  };

  // Adds some of a minibatch's rows, each with `weight` in the means, to the gradient and, without weight, to `sum`.
  void AddRows(const Minibatch& rows, double weight, const v1::PpoConfig& config, LossValues& sum);
  Workspace& WorkspaceFor(int64_t rows);
  void Forward(const std::vector<Layer>& layers, const torch::Tensor& input, Buffers& buffers) const;
  // From the head's delta, which is set.
  void Backward(std::vector<Layer>& layers, const torch::Tensor& input, const torch::Tensor& ones,
                Buffers& buffers) const;

  const ActivationKind activation_;
  std::vector<Layer> policy_, value_;
  torch::Tensor log_std_, grad_log_std_;  // [D]; undefined if discrete.
  std::vector<Workspace> workspaces_;     // One for each of the last few batch sizes.
};

}  // namespace skein
