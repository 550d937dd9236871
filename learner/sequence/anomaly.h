// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "learner/sequence/lstm_pass.h"
#include "learner/sequence/sequence_batch.h"
#include "skein/v1/fit.pb.h"

// Judges sequences by how probable a model finds each of their keys, and their end.
//   rows -> JudgeRows -> KeyJudgement of each step -> Limits -> verdict
namespace skein {

// One key as the model saw it coming.
struct KeyJudgement {
  float probability = 0;  // Of this key, after those before it. 0 for an unknown key.
  uint32_t rank = 0;      // How many keys (or the end) were more probable. All of them for an unknown key.
  bool unknown = false;
};

// The judgements of each row first .. last-1, by row - first and step.
std::vector<std::vector<KeyJudgement>> JudgeRows(const NetWeights& weights, const SequenceBatch& batch, uint32_t first,
                                                 uint32_t last, uint32_t classes, LstmPass* pass);

// Where the rows end that JudgeRows takes together from `first` on: so many that a pass keeps at most 64 MiB, and one
// at least.
uint32_t EndOfRowsTogether(const NetLayout& layout, const SequenceBatch& batch, uint32_t first);

// From where on a key is anomalous: below `probability`, or `top_g` or more keys were more probable. An unknown one is.
struct Limits {
  v1::DetectRule rule = v1::DETECT_RULE_PROBABILITY;
  double probability = 0;
  uint32_t top_g = 1;

  bool IsAnomalous(const KeyJudgement& key) const {
    if (key.unknown) return true;
    return rule == v1::DETECT_RULE_TOP_G ? key.rank >= top_g : key.probability < probability;
  }
};

// The worst keys of one held-out sequence, and how many sequences are like it.
struct HeldOutScore {
  float least_probability = 1;
  uint32_t greatest_rank = 0;
  uint32_t weight = 1;
  bool has_unknown = false;  // A key that training has not had; it is anomalous under any limit.
};
HeldOutScore WorstOf(absl::Span<const KeyJudgement> keys, uint32_t weight);

// What the limits were chosen from.
struct LimitChoice {
  Limits limits;
  uint64_t sequences = 0;  // Held-out sequences of known keys, from which the limits are.
  uint64_t unknown = 0;    // Left out: they have a key that training has not had, and no limit changes their verdict.
};

// The strictest limits for which at most the share detect.false_alarms of the held-out sequences of known keys is
// anomalous. What the configuration sets itself is taken as it is. Without such sequences: probability 0 and all keys,
// so that only unknown keys are anomalous.
LimitChoice ChooseLimits(const v1::FitDetectConfig& detect, std::vector<HeldOutScore> held_out, uint32_t classes);

// Whether `detect` sets the limit of its rule itself, so that nothing needs to be chosen.
bool SetsLimit(const v1::FitDetectConfig& detect);

}  // namespace skein
