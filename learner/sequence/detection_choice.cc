// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/detection_choice.h"

#include <memory>
#include <utility>
#include <vector>

#include "learner/sequence/batch_stream.h"

namespace skein {
namespace {

constexpr uint32_t kHeldOutBatch = 4096;  // Sequences that are read together.

absl::Span<const uint32_t> ClassesOf(const Sequences& sequences, size_t i) {
  return absl::MakeConstSpan(sequences.classes).subspan(sequences.begins[i], sequences.length(i));
}

absl::Status AddCounts(const SequenceStore& store, Part part, KnownCounts* known) {
  for (const BlockPlace& block : store.blocks(part)) {
    Sequences sequences;
    if (absl::Status s = store.Read(part, block, &sequences); !s.ok()) return s;
    for (size_t i = 0; i < sequences.size(); ++i) known->Add(ClassesOf(sequences, i), sequences.cut[i] != 0);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DetectionChoice> ChooseDetection(const v1::FitDetectConfig& detect, const SequenceStore& store,
                                                const NetLayout& layout, const NetWeights& weights) {
  const uint32_t classes = store.vocabulary().classes();
  DetectionChoice choice;
  choice.has_known = detect.known_counts();
  if (choice.has_known) {
    if (absl::Status s = AddCounts(store, Part::kTrain, &choice.known); !s.ok()) return s;
  }
  BatchStream::Options options;
  options.part = Part::kHeldOut;
  options.order.shuffled = false;
  options.order.window = 1;
  options.order.batch_size = kHeldOutBatch;
  BatchStream batches(&store, options);
  LstmPass pass(&layout);
  std::vector<HeldOutScore> alone, others;
  for (;;) {
    const auto batch = batches.Next();
    if (!batch.ok()) return batch.status();
    if (*batch == nullptr) break;
    const Sequences& sequences = (*batch)->rows;
    const auto rows = static_cast<uint32_t>(sequences.size());
    for (uint32_t first = 0, last = 0; first < rows; first = last) {
      last = EndOfRowsTogether(layout, **batch, first);
      const auto judged = JudgeRows(weights, **batch, first, last, classes, &pass);
      for (uint32_t row = first; row < last; ++row) {
        HeldOutScore score = WorstOf(judged[row - first], (*batch)->weights[row]);
        alone.push_back(score);
        if (choice.known.Contains(ClassesOf(sequences, row), sequences.cut[row] != 0)) {
          score.least_probability = 1;
          score.greatest_rank = 0;
        } else if (!score.has_unknown) {
          choice.new_counts += score.weight;
        }
        others.push_back(score);
      }
    }
  }
  choice.alone = ChooseLimits(detect, std::move(alone), classes);
  if (!choice.has_known) return choice;
  choice.others = ChooseLimits(detect, std::move(others), classes);
  // Only now: what was held out has told how often a new sequence has counts that are new.
  if (absl::Status s = AddCounts(store, Part::kHeldOut, &choice.known); !s.ok()) return s;
  return choice;
}

}  // namespace skein
