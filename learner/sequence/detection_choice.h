// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "learner/sequence/anomaly.h"
#include "learner/sequence/known_counts.h"
#include "learner/sequence/lstm_pass.h"
#include "learner/sequence/net_layout.h"
#include "learner/sequence/sequence_store.h"
#include "skein/v1/fit.pb.h"

namespace skein {

// The limits, chosen from held-out data, by which a trained model judges sequences.
struct DetectionChoice {
  LimitChoice alone;  // For all sequences, by the model alone.

  // With detect.known_counts only: a sequence whose count vector is in `known` is normal, and the others have a limit
  // of their own. It is chosen from the same held-out sequences, by the same rule, as if every key of those were the
  // most probable whose count vector the training part has.
  bool has_known = false;
  LimitChoice others;
  KnownCounts known;        // Of the training part and of the held-out one.
  uint64_t new_counts = 0;  // Held-out sequences, of known keys, whose count vector the training part has not.

  const Limits& limits() const { return has_known ? others.limits : alone.limits; }
};

// Is told what is done, and its share, from several threads. false: the caller wants no more.
using ChoiceProgress = std::function<bool(const char* what, double share)>;

// Chooses it from the held-out part of `store`. The same for any number of `threads`, which each keep one block and one
// pass in memory. Errors as SequenceStore::Read; Cancelled, if `progress` wants no more.
absl::StatusOr<DetectionChoice> ChooseDetection(const v1::FitDetectConfig& detect, const SequenceStore& store,
                                                const NetLayout& layout, const NetWeights& weights, uint32_t threads,
                                                const ChoiceProgress& progress);

}  // namespace skein
