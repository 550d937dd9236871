// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "learner/algorithm/ppo/ppo_loss.h"
#include "learner/network/actor_critic.h"
#include "learner/optimize/minibatch.h"
#include "learner/optimize/thread_team.h"
#include "policy/aligned_floats.h"
#include "policy/packed_layer.h"

namespace skein {

// The gradient of PpoLoss for small networks on the CPU, written out instead of recorded by autograd, with products of
// our own: rows go through the networks a few at a time and stay in the cache.   Minibatch -> Compute -> parameters'
// grad() Equal to autograd up to rounding. Not thread-safe.
// With several threads, each takes so many rows in a row, and their gradients are added up in order: the same number of
// threads gives the same bits. Less than 96 rows for each use fewer threads.
class FusedGradient {
 public:
  // On the CPU, and no hidden layer too wide for it to pay.
  static bool Supports(const ActorCritic& network);

  // The parameters' grad() must be defined; both must stay where they are in memory, and `network` outlives this.
  // `threads` >= 1, with the caller's. REQUIRES: Supports(network).
  explicit FusedGradient(const ActorCritic& network, int threads = 1);

  // Adds the gradient of the samples index[0..size) to the grad() of every parameter. Returns their loss. Where they
  // are only a part of a minibatch, of `minibatch_size` samples, both are that part's share in the means over all of
  // it. REQUIRES: tensors of `samples` are contiguous.
  PpoLossValues Compute(const Minibatch& samples, const int64_t* index, int64_t size, const v1::PpoConfig& config,
                        int64_t minibatch_size = 0);

  // What the value function reads, [B, C] or obs [B, O] -> [B], without gradients.
  torch::Tensor Values(const torch::Tensor& input);
  // obs [B, O] -> mean [B, D] or logits [B, C], without gradients.
  torch::Tensor PolicyHead(const torch::Tensor& obs);

 private:
  enum class Gradients { kOfNetwork, kOwn };
  FusedGradient(const ActorCritic& network, int threads, Gradients gradients);

  // With buffers for kRows rows of Padded(outputs).
  struct Layer {
    PackedLayer packed;
    float* grad_weight;  // [outputs, inputs]
    float* grad_bias;    // [outputs]
    // As above with rows padded; the first two empty where a row needs no padding.
    AlignedFloats padded_weight, padded_grad_weight, padded_grad_bias;
    AlignedFloats output;  // After the activation.
    AlignedFloats delta;   // Gradient by what goes into the activation.
  };
  using Stack = std::vector<Layer>;
  // Rows that go into a stack.
  struct Input {
    const float* data;
    int64_t stride;
    float* delta;      // Gradient by them, of the same stride; null: not wanted.
    bool accumulates;  // Adds to `delta` instead of setting it.
  };

  // Calls part(worker, p, first, rows) for each part p of `size` rows, in several threads at once; how many there were.
  // Threads are started when there is work for them.
  int ForParts(int64_t size, const std::function<void(FusedGradient&, int, int64_t, int64_t)>& part);
  // As Compute, on the calling thread.
  PpoLossValues ComputePart(const Minibatch& samples, const int64_t* index, int64_t size, const v1::PpoConfig& config,
                            double weight);
  // Adds another's gradient to ours.
  void AddGradient(const FusedGradient& other);
  void Pack();
  void AddPaddedGradients();
  void ClearPaddedGradients();
  // Rows that go into the networks, padded with zeros.
  struct Rows {
    explicit Rows(int64_t width);
    // index null: rows [first, first + rows) of `from`.
    void Copy(const float* from, const int64_t* index, int64_t first, int64_t rows);
    Input input() const { return {buffer.data(), stride, nullptr, false}; }

    int64_t width, stride;
    AlignedFloats buffer;  // [kRows, stride]
  };
  // The first `activated` layers are followed by the activation.
  void Forward(Stack& stack, size_t activated, Input input, int64_t rows) const;
  // From the last layer's delta, which is set.
  void Backward(Stack& stack, Input input, int64_t rows) const;
  // What policy and value stack read: the trunk's output, or the rows themselves.
  Input Features(const Rows& rows);
  // The last layer's output [B, outputs], over all of `input`.
  enum class Head { kPolicy, kValue };
  torch::Tensor Output(const torch::Tensor& input, Head which);
  // The same of rows [first, first + count), on the calling thread.
  void OutputPart(const float* input, int64_t first, int64_t count, Head which, float* out);

  const ActorCritic& network_;
  const ActivationKind activation_;
  const int threads_;
  std::vector<std::unique_ptr<FusedGradient>> others_;  // Of further threads, with gradients of their own,
  std::unique_ptr<ThreadTeam> team_;                    // and the threads; null: none.
  std::vector<torch::Tensor> gradients_;                // By parameter.
  Stack trunk_;                                         // Empty unless shared.
  Stack policy_, value_;                                // Head last.
  torch::Tensor log_std_, grad_log_std_;                // [D]; undefined if discrete.
  Rows obs_;
  std::optional<Rows> critic_input_;  // Nullopt: the value function reads obs.
};

}  // namespace skein
