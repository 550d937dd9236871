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
#include "learner/optimize/fused_memory.h"
#include "learner/optimize/minibatch.h"
#include "learner/optimize/thread_team.h"
#include "policy/aligned_floats.h"
#include "policy/packed_layer.h"

namespace skein {

// A hand-written gradient of PpoLoss for small networks on the CPU, without autograd or Torch's matrix products. Rows
// pass through the networks in small groups that stay in the cache.   Minibatch -> Compute -> parameters' grad()
// Equal to autograd up to rounding. Not thread-safe.
// Each thread takes one contiguous range of rows, and the threads' gradients are added in order: an equal number of
// threads gives equal bits. With less than 96 rows per thread, fewer threads are used.
// With a memory, a row of the samples is a sequence (Sequences). FusedMemory runs some of them at a time; its outputs
// are the rows that the other layers read, and what they give back goes through it.
class FusedGradient {
 public:
  // The network is on the CPU, and its layers are narrow enough that this class is faster than Torch.
  static bool Supports(const ActorCritic& network);

  // The parameters' grad() must be defined; parameters and grad() must keep their addresses. `network` must outlive
  // this. `threads` >= 1, including the caller's. REQUIRES: Supports(network).
  explicit FusedGradient(const ActorCritic& network, int threads = 1);

  // Adds the gradient of the samples index[0..size) to the grad() of every parameter. Returns their loss. If they are
  // a part of a minibatch of `minibatch_size` samples, both are that part's contribution to the means over the whole
  // minibatch. With a memory, index and size are of sequences, and minibatch_size > 0 of samples. REQUIRES: tensors of
  // `samples` are contiguous; there is no burn-in.
  PpoLossValues Compute(const Minibatch& samples, const int64_t* index, int64_t size, const v1::PpoConfig& config,
                        int64_t minibatch_size = 0);

  // Value function input, [B, C] or obs [B, O] -> [B], without gradients. With a memory, both read what it gives.
  torch::Tensor Values(const torch::Tensor& input);
  // obs [B, O] -> mean [B, D] or logits [B, C], without gradients.
  torch::Tensor PolicyHead(const torch::Tensor& obs);
  // What the network's memory() or critic_memory() gives, as RunMemory, without gradients; no bit depends on the
  // number of threads.
  MemoryRun Remember(const MemoryCell& cell, const torch::Tensor& input, const torch::Tensor& begins,
                     const torch::Tensor& state);

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
    AlignedFloats delta;   // Gradient with respect to the activation's input.
  };
  using Stack = std::vector<Layer>;
  // Input rows of a stack.
  struct Input {
    const float* data;
    int64_t stride;
    float* delta;      // Gradient with respect to `data`, same stride; null: not computed.
    bool accumulates;  // Adds to `delta` instead of setting it.
  };

  // Calls part(worker, p, first, rows) for each part p of `size` rows, on several threads; returns the number of parts.
  // A part has `least` rows at least, in whole tiles. Threads are started when they are first needed.
  int ForParts(int64_t size, int64_t least, int64_t tile,
               const std::function<void(FusedGradient&, int, int64_t, int64_t)>& part);
  // What memories gave, and where the gradient goes. The samples in hand are the rows row[0], row[1], ... of each.
  struct Given {
    FusedMemory* policy;
    FusedMemory* value;         // The same as `policy` unless the value function has a memory of its own.
    const float* global_state;  // [*, G], by sample; null: the value function reads the memory alone.
    std::vector<int64_t> row;
  };
  // As Compute, on the calling thread. Sums are added to `loss`, without weights. Null `given`: no memory.
  void ComputeRows(const Minibatch& samples, const int64_t* index, int64_t size, const v1::PpoConfig& config,
                   double weight, const Given* given, PpoLossValues& loss);
  // The same of sequences.
  void ComputeSequences(const Minibatch& samples, const int64_t* index, int64_t size, const v1::PpoConfig& config,
                        double weight, PpoLossValues& loss);
  // Copies rows that memories gave to the input buffers; adds the gradient with respect to them to the memories'.
  void TakeGiven(const Given& given, const int64_t* index, int64_t first, int64_t rows);
  void GiveBack(const Given& given, int64_t first, int64_t rows) const;
  // Adds the gradient of `other` to this one's.
  void AddGradient(const FusedGradient& other);
  void Pack();
  void AddPaddedGradients();
  void ClearPaddedGradients();
  // A buffer of the networks' input rows, padded with zeros.
  struct Rows {
    Rows(int64_t width, bool differentiates);
    // Null `index`: copies rows [first, first + rows) of `from`.
    void Copy(const float* from, const int64_t* index, int64_t first, int64_t rows);
    Input input() { return {buffer.data(), stride, delta.empty() ? nullptr : delta.data(), false}; }

    int64_t width, stride;
    AlignedFloats buffer, delta;  // [kRows, stride]; delta is empty unless the gradient is wanted.
  };
  // The first `activated` layers are followed by the activation.
  void Forward(Stack& stack, size_t activated, Input input, int64_t rows) const;
  // REQUIRES: the last layer's delta is set.
  void Backward(Stack& stack, Input input, int64_t rows) const;
  // Input of the policy and value stacks: the trunk's output, or the rows themselves.
  Input Features(Rows& rows);
  // The last layer's output [B, outputs], over all of `input`.
  enum class Head { kPolicy, kValue };
  torch::Tensor Output(const torch::Tensor& input, Head which);
  // The same of rows [first, first + count), on the calling thread.
  void OutputPart(const float* input, int64_t first, int64_t count, Head which, float* out);

  const ActorCritic& network_;
  const ActivationKind activation_;
  const int threads_;
  std::vector<std::unique_ptr<FusedGradient>> others_;   // One for each further thread, with separate gradients.
  std::unique_ptr<ThreadTeam> team_;                     // The further threads; null: none.
  std::vector<torch::Tensor> gradients_;                 // By parameter.
  Stack trunk_;                                          // Empty unless shared.
  Stack policy_, value_;                                 // Head last.
  torch::Tensor log_std_, grad_log_std_;                 // [D]; undefined if discrete.
  Rows obs_;                                             // Or what the memory gives.
  std::optional<Rows> critic_input_;                     // Nullopt: the value function reads the same.
  std::unique_ptr<FusedMemory> memory_, critic_memory_;  // Null: none.
};

}  // namespace skein
