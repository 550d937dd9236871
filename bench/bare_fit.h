// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "learner/sequence/sequence_batch.h"
#include "skein/v1/fit.pb.h"

namespace skein {

// Measures the upper limit of `skein fit`'s gradient step: its model in plain LibTorch, torch::nn::Embedding, LSTM and
// Linear, cross entropy with a mask, autograd, clip_grad_norm_ and torch::optim::Adam. The numbers that it begins with
// are those of FitTrainer; the second bias of torch::nn::LSTM stays 0. Rows are padded to the longest of their batch,
// and equal sequences are rows of their own. Not thread-safe.
class BareFit {
 public:
  // `classes`: Vocabulary::classes(). `threads`: Torch's, during Step. Errors as ParseTrainingDevice; Internal: Torch
  // failed.
  static absl::StatusOr<std::unique_ptr<BareFit>> Make(const v1::FitConfig& config, uint32_t classes, uint32_t threads);
  ~BareFit();

  // Pads a batch and keeps it, in the CPU's memory. Internal: Torch failed.
  absl::Status Add(const SequenceBatch& batch);
  size_t batches() const;

  // One step at train.lr with batch `index` of those added. Returns the mean loss of a key before it. Internal: Torch
  // failed; an out of memory is not caught by halving the batch.
  absl::StatusOr<double> Step(size_t index);
  uint64_t tokens(size_t index) const;      // Of a batch: keys and ends.
  double padded_share(size_t index) const;  // Of what is computed for it.
  std::string device() const;

 private:
  struct Impl;
  explicit BareFit(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace skein
