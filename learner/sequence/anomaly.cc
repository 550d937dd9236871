// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/anomaly.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace skein {

uint32_t EndOfRowsTogether(const NetLayout& layout, const SequenceBatch& batch, uint32_t first) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  const size_t most_places = kMostBytes / LstmPass::BytesOfAPlace(layout);
  size_t places = batch.rows.steps(first);
  uint32_t last = first + 1;
  for (; last < batch.rows.size() && places + batch.rows.steps(last) <= most_places; ++last) {
    places += batch.rows.steps(last);
  }
  return last;
}

std::vector<std::vector<KeyJudgement>> JudgeRows(const NetWeights& weights, const SequenceBatch& batch, uint32_t first,
                                                 uint32_t last, uint32_t classes, LstmPass* pass) {
  const PackedSteps steps = PackRows(batch, first, last);
  pass->Forward(weights, steps);
  std::vector<std::vector<KeyJudgement>> judgements(last - first);
  for (size_t t = 0; t < steps.counts.size(); ++t) {
    for (uint32_t row = 0; row < steps.counts[t]; ++row) {
      const uint32_t place = steps.offsets[t] + row, target = steps.target[place];
      KeyJudgement key;
      if (target == Vocabulary::kUnknown) {
        key.rank = classes;
        key.unknown = true;
      } else {
        const float* const p = pass->probabilities(place);
        key.probability = p[target];
        key.rank = static_cast<uint32_t>(std::count_if(p, p + classes, [&](float q) { return q > key.probability; }));
      }
      judgements[row].push_back(key);
    }
  }
  return judgements;
}

HeldOutScore WorstOf(absl::Span<const KeyJudgement> keys, uint32_t weight) {
  HeldOutScore score;
  score.weight = weight;
  for (const KeyJudgement& key : keys) {
    score.least_probability = std::min(score.least_probability, key.probability);
    score.greatest_rank = std::max(score.greatest_rank, key.rank);
    score.has_unknown |= key.unknown;
  }
  return score;
}

LimitChoice ChooseLimits(const v1::FitDetectConfig& detect, std::vector<HeldOutScore> held_out, uint32_t classes) {
  LimitChoice choice;
  for (const HeldOutScore& score : held_out) (score.has_unknown ? choice.unknown : choice.sequences) += score.weight;
  held_out.erase(
      std::remove_if(held_out.begin(), held_out.end(), [](const HeldOutScore& score) { return score.has_unknown; }),
      held_out.end());
  const double allowed = std::floor(detect.false_alarms() * static_cast<double>(choice.sequences));
  Limits& limits = choice.limits;
  limits.rule = detect.rule();
  // The worst sequences that may be anomalous, then the first that may not: nothing of it is.
  limits.probability = std::numeric_limits<float>::min();
  std::sort(held_out.begin(), held_out.end(),
            [](const HeldOutScore& a, const HeldOutScore& b) { return a.least_probability < b.least_probability; });
  double seen = 0;
  for (const HeldOutScore& score : held_out) {
    seen += score.weight;
    if (seen <= allowed) continue;
    limits.probability = std::max<double>(limits.probability, score.least_probability);
    break;
  }
  limits.top_g = classes;
  std::sort(held_out.begin(), held_out.end(),
            [](const HeldOutScore& a, const HeldOutScore& b) { return a.greatest_rank > b.greatest_rank; });
  seen = 0;
  for (const HeldOutScore& score : held_out) {
    seen += score.weight;
    if (seen <= allowed) continue;
    limits.top_g = std::min(classes, score.greatest_rank + 1);
    break;
  }
  if (detect.probability() > 0) limits.probability = detect.probability();
  if (detect.top_g() > 0) limits.top_g = detect.top_g();
  return choice;
}

bool SetsLimit(const v1::FitDetectConfig& detect) {
  return detect.rule() == v1::DETECT_RULE_TOP_G ? detect.top_g() > 0 : detect.probability() > 0;
}

}  // namespace skein
