// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "learner/ranks/collective.h"

// Assigns the samples of an epoch to minibatches.
namespace skein {

// The rows of the run-wide batch that one rank holds: its row (t, c) of [T, M] is row t * total + offset + c run-wide.
struct RowShare {
  int64_t steps;                   // T
  int64_t columns, offset, total;  // M; first column of this rank and number of columns, run-wide.

  int64_t size() const { return steps * columns; }
  int64_t total_size() const { return steps * total; }
};

// One rank's part of one epoch's minibatches.
struct MinibatchOrder {
  torch::Tensor rows;          // int64 [T * M], the rank's own rows, minibatch after minibatch; on any device.
  std::vector<int64_t> begin;  // Start of each minibatch in `rows`, then the end of the last one.
  std::vector<int64_t> size;   // Rows of each minibatch on all ranks together.

  size_t minibatches() const { return size.size(); }
};

// Shuffles the rows of all ranks by a Fisher-Yates permutation from the stream (seed, iteration, epoch) and cuts them
// into minibatches; the last one takes the remainder too. All ranks use the same permutation.
MinibatchOrder ShuffleMinibatches(const RowShare& share, int64_t minibatch_size, uint64_t seed, uint64_t iteration,
                                  uint32_t epoch);

// Removes the rows whose `active`, bool [T * M], is false. Minibatches become smaller and may become empty. Errors as
// Collective's; null: a single rank.
absl::Status KeepActive(const torch::Tensor& active, Collective* collective, MinibatchOrder* order);

// ShuffleMinibatches and KeepActive in one, on the device of `active`, by that device's random numbers: the order is
// another than the CPU's. It is on the device, too. Waits for the device. Errors as KeepActive's.
absl::StatusOr<MinibatchOrder> ShuffleActive(const RowShare& share, const torch::Tensor& active, int64_t minibatch_size,
                                             uint64_t seed, uint64_t iteration, uint32_t epoch, Collective* collective);

}  // namespace skein
