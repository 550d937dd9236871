// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/epoch_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/number/philox.h"

namespace skein {
namespace {

// Streams of one epoch: the blocks, the sequences of window w, the batches of window w.
constexpr uint64_t kBlocks = uint64_t{1} << 31, kBatches = uint64_t{1} << 30;
// No window has more keys, however few sequences these are: 64 MiB.
constexpr uint64_t kMaxWords = uint64_t{1} << 24;

template <typename T>
void Shuffle(RandomStream random, std::vector<T>* items) {
  for (size_t i = items->size(); i > 1; --i)
    std::swap((*items)[i - 1], (*items)[random.Below(static_cast<uint32_t>(i))]);
}

}  // namespace

std::vector<EpochWindow> OrderEpoch(const std::vector<BlockPlace>& blocks, const EpochOptions& options) {
  std::vector<BlockPlace> order = blocks;
  if (options.shuffled) {
    Shuffle(RandomStream(options.seed, RandomPurpose::kPermutation, options.epoch, kBlocks), &order);
  }
  std::vector<EpochWindow> windows;
  uint64_t batches = 0, words = 0;
  for (const BlockPlace& block : order) {
    if (windows.empty() || windows.back().sequences >= options.window || words + block.words > kMaxWords) {
      if (!windows.empty()) batches += BatchesOf(windows.back().sequences, options.batch_size);
      windows.emplace_back();
      windows.back().number = static_cast<uint32_t>(windows.size() - 1);
      windows.back().first_batch = batches;
      words = 0;
    }
    windows.back().blocks.push_back(block);
    windows.back().sequences += block.sequences;
    words += block.words;
  }
  return windows;
}

std::vector<std::vector<uint32_t>> OrderWindow(const std::vector<uint32_t>& steps, uint32_t window,
                                               const EpochOptions& options) {
  std::vector<uint32_t> order(steps.size());
  std::iota(order.begin(), order.end(), 0);
  if (options.shuffled) {
    Shuffle(RandomStream(options.seed, RandomPurpose::kPermutation, options.epoch, window), &order);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return steps[a] < steps[b]; });
  }
  std::vector<std::vector<uint32_t>> batches;
  for (size_t first = 0; first < order.size(); first += options.batch_size) {
    const size_t last = std::min(order.size(), first + options.batch_size);
    batches.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(first),
                         order.begin() + static_cast<std::ptrdiff_t>(last));
  }
  if (options.shuffled) {
    Shuffle(RandomStream(options.seed, RandomPurpose::kPermutation, options.epoch, kBatches + window), &batches);
  }
  return batches;
}

}  // namespace skein
