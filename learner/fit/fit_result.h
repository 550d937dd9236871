// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace skein {

// The result of `skein fit` in a run's folder, by its newest checkpoint, as one JSON object:
//   run_directory, checkpoint, digest, finished (false: it was stopped), epochs, steps, skipped_steps, sequences, keys,
//   best_epoch, held_out_loss (of that epoch; null: there is none), limit {rule, probability, top_g} (of `skein
//   detect`; null: none is chosen)
// Errors as FindCheckpoint and ReadSavedModel.
absl::StatusOr<std::string> FitResultJson(const std::string& run_directory);

}  // namespace skein
