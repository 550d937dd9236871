// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace skein {

// Progress of a training, and the numbers that a resumed training continues from. All of it is in a checkpoint.
struct FitProgress {
  uint64_t epoch = 0;       // Finished ones.
  uint64_t next_batch = 0;  // Of the epoch that is under way.
  uint64_t steps = 0;       // Gradient steps so far, and those that were skipped because they were not finite.
  uint64_t skipped = 0;
  uint64_t sequences = 0;  // Used so far, each once an epoch.
  uint64_t keys = 0;       // Predicted so far, ends included.
  // Of the epoch under way.
  uint64_t epoch_sequences = 0, epoch_keys = 0;
  double epoch_loss = 0;  // Sum over keys.
  // Early stopping. Infinite: none yet.
  uint64_t best_epoch = 0;
  double best_held_out_loss = 0, held_out_loss = 0;  // Mean of a key.
  bool finished = false;
};

// What one gradient step found, over all ranks.
struct FitStep {
  double loss = 0;  // Mean of a key.
  double gradient_norm = 0;
  bool taken = true;       // false: the gradient was not finite.
  bool any_stops = false;  // Whether a rank was asked to stop.
  uint64_t distinct_keys = 0;
  uint64_t sequences = 0;  // That the ranks computed, each as often as it is in the batch.
};

}  // namespace skein
