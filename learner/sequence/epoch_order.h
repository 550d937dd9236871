// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "learner/sequence/sequence_store.h"

// The order in which an epoch uses the sequences: a pure function of (seed, epoch), not of threads or ranks.
//   blocks in random order -> windows of consecutive blocks -> within a window: sequences in random order, sorted by
//   length, cut into batches of neighbours -> the window's batches in random order
// So a batch has sequences of about one length, and each sequence is in one batch of the epoch.
namespace skein {

// Consecutive blocks that are in memory together.
struct EpochWindow {
  std::vector<BlockPlace> blocks;
  uint32_t sequences = 0;
  uint32_t number = 0;       // Among the epoch's.
  uint64_t first_batch = 0;  // Of the epoch; the window has as many as BatchesOf says.
};

struct EpochOptions {
  uint64_t seed = 1;
  uint64_t epoch = 0;
  uint32_t window = 32768;  // Sequences, at least, unless there are no more.
  uint32_t batch_size = 256;
  bool shuffled = true;  // false: all in the order of the files.
};

inline uint64_t BatchesOf(uint32_t sequences, uint32_t batch_size) { return (sequences + batch_size - 1) / batch_size; }

// Of a whole epoch.
inline uint64_t BatchesOf(const std::vector<EpochWindow>& windows, uint32_t batch_size) {
  return windows.empty() ? 0 : windows.back().first_batch + BatchesOf(windows.back().sequences, batch_size);
}

std::vector<EpochWindow> OrderEpoch(const std::vector<BlockPlace>& blocks, const EpochOptions& options);

// The batches of a window, each a list of indices into its sequences. `steps`: of each sequence.
std::vector<std::vector<uint32_t>> OrderWindow(const std::vector<uint32_t>& steps, uint32_t window,
                                               const EpochOptions& options);

}  // namespace skein
