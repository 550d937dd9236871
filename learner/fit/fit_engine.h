// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "learner/optimize/memory_limit.h"
#include "learner/sequence/anomaly.h"
#include "learner/sequence/net_layout.h"
#include "learner/sequence/sequence_batch.h"
#include "skein/v1/fit.pb.h"

// The interface of engines that compute the gradients of a sequence model.
namespace skein {

// Of the engines' micro-batches, for messages.
inline constexpr MemoryLimit::Words kFitWords{"sequence", "train.micro_batch_size",
                                              "the model is too large, or data.max_length is"};

// Parts first .. last-1 of a batch.
struct PartRange {
  uint32_t first = 0, last = 0;
};

// Computes losses and gradients of a NetLayout's model. Two implementations: LstmPass on the processor's threads, and
// LibTorch's LSTM with autograd (cuDNN on a GPU). Not thread-safe.
// ResourceExhausted: no memory for a single row; with more rows the micro-batch is halved and all is computed again.
class FitEngine {
 public:
  virtual ~FitEngine() = default;

  // Sets `gradient` to the sum over the parts, in their order, of the gradient of scale x the sum of weight x -log p,
  // and losses[part - first] to that sum without `scale`.
  virtual absl::Status Gradient(const SequenceBatch& batch, PartRange parts, double scale, torch::Tensor gradient,
                                std::vector<double>* losses) = 0;
  // The losses alone.
  virtual absl::Status Loss(const SequenceBatch& batch, PartRange parts, std::vector<double>* losses) = 0;

  // Sequences whose losses are in the last call's, counted as they were computed.
  virtual uint64_t sequences() const = 0;
  // How often the micro-batch was halved.
  virtual int64_t out_of_memory() const = 0;
  // For tests: called with the rows of each pass before it; may throw.
  virtual void SetMemoryProbe(std::function<void(int64_t)> probe) = 0;
};

// `parameters`: the array of `layout`, which the engine reads at each call, on the CPU. `parts`: of the rank.
std::unique_ptr<FitEngine> MakeThreadEngine(const v1::FitTrainConfig& train, const NetLayout* layout, uint32_t parts,
                                            torch::Tensor parameters);
// The same with LibTorch. `parameters`: the array on any device. `views`: its parameters as leaves, in the layout's
// order, whose gradients are views of the array that Gradient() is given.
std::unique_ptr<FitEngine> MakeTorchEngine(const v1::FitTrainConfig& train, const NetLayout* layout,
                                           std::vector<torch::Tensor> views);

}  // namespace skein
