// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "learner/ranks/collective.h"

// Which samples make up the minibatches of an epoch.
namespace skein {

// The rows of the run-wide batch that a rank holds: row (t, c) of its [T, M] is row t * total + offset + c of all.
struct RowShare {
  int64_t steps;                   // T
  int64_t columns, offset, total;  // M, and its columns' place among those of all ranks.

  int64_t size() const { return steps * columns; }
  int64_t total_size() const { return steps * total; }
};

// One epoch's minibatches, as far as they are a rank's.
struct MinibatchOrder {
  torch::Tensor rows;          // int64 [T * M], the rank's own rows, minibatch after minibatch
  std::vector<int64_t> begin;  // Where each minibatch begins in `rows`, and the end.
  std::vector<int64_t> size;   // Of each minibatch, with the rows of all ranks.

  size_t minibatches() const { return size.size(); }
};

// Shuffles the rows of all ranks by a Fisher-Yates permutation from the stream (seed, iteration, epoch) and cuts them
// into minibatches; the last one takes the remainder too. The same permutation on every rank, whatever its share.
MinibatchOrder ShuffleMinibatches(const RowShare& share, int64_t minibatch_size, uint64_t seed, uint64_t iteration,
                                  uint32_t epoch);

// Takes the rows out whose `active`, bool [T * M], is false; minibatches become smaller, maybe empty. Errors as
// Collective's; null: a single rank.
absl::Status KeepActive(const torch::Tensor& active, Collective* collective, MinibatchOrder* order);

// Advantages float32 [T * M] with zero mean and unit variance within each minibatch of all ranks. Errors as
// Collective's; null: a single rank.
absl::StatusOr<torch::Tensor> NormalizedAdvantages(const torch::Tensor& advantage, const MinibatchOrder& order,
                                                   Collective* collective);

}  // namespace skein
