// SPDX-License-Identifier: Apache-2.0
#include "learner/sequence/detection_choice.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "learner/sequence/sequence_batch.h"

namespace skein {
namespace {

absl::Span<const uint32_t> ClassesOf(const Sequences& sequences, size_t i) {
  return absl::MakeConstSpan(sequences.classes).subspan(sequences.begins[i], sequences.length(i));
}

absl::Status Stopped() {
  return absl::CancelledError("stopped on request while the limits of `skein detect` were chosen");
}

// One part of the data, whose blocks threads share.
class SharedPart {
 public:
  SharedPart(const SequenceStore& store, Part part, const char* what, const ChoiceProgress& progress)
      : store_(store), part_(part), what_(what), progress_(progress) {
    for (const BlockPlace& block : blocks()) sequences_ += block.sequences;
  }

  const std::vector<BlockPlace>& blocks() const { return store_.blocks(part_); }
  // Some more sequences are done. Cancelled: the caller wants no more.
  absl::Status Count(uint64_t sequences) {
    const uint64_t done = done_ += sequences;
    const double share = sequences_ > 0 ? static_cast<double>(done) / static_cast<double>(sequences_) : 1;
    return progress_(what_, share) ? absl::OkStatus() : Stopped();
  }
  // Does work(thread, block, its sequences) for each block, on several threads. The first error ends all.
  template <typename Work>
  absl::Status ForEachBlock(uint32_t threads, Work work) {
    std::atomic<size_t> next{0};
    absl::Mutex mu;
    absl::Status failure = Count(0);
    const auto run = [&](uint32_t thread) {
      for (size_t i = next++; i < blocks().size(); i = next++) {
        Sequences sequences;
        absl::Status status = store_.Read(part_, blocks()[i], &sequences);
        if (status.ok()) status = work(thread, i, sequences);
        const absl::MutexLock lock(&mu);
        failure.Update(status);
        if (!failure.ok()) return;
      }
    };
    if (!failure.ok()) return failure;
    std::vector<std::thread> helpers;
    for (uint32_t thread = 1; thread < std::min<size_t>(threads, blocks().size()); ++thread) {
      helpers.emplace_back(run, thread);
    }
    run(0);
    for (std::thread& helper : helpers) helper.join();
    return failure;
  }

 private:
  const SequenceStore& store_;
  const Part part_;
  const char* const what_;
  const ChoiceProgress& progress_;
  uint64_t sequences_ = 0;
  std::atomic<uint64_t> done_{0};
};

absl::Status AddCounts(SharedPart* part, uint32_t threads, KnownCounts* known) {
  std::vector<KnownCounts> found(threads);  // Of each thread.
  const auto add = [&](uint32_t thread, size_t /*block*/, const Sequences& sequences) {
    for (size_t i = 0; i < sequences.size(); ++i) found[thread].Add(ClassesOf(sequences, i), sequences.cut[i] != 0);
    return part->Count(sequences.size());
  };
  const absl::Status status = part->ForEachBlock(threads, add);
  for (const KnownCounts& counts : found) known->Merge(counts);
  return status;
}

}  // namespace

absl::StatusOr<DetectionChoice> ChooseDetection(const v1::FitDetectConfig& detect, const SequenceStore& store,
                                                const NetLayout& layout, const NetWeights& weights, uint32_t threads,
                                                const ChoiceProgress& progress) {
  const uint32_t classes = store.vocabulary().classes();
  DetectionChoice choice;
  choice.has_known = detect.known_counts();
  if (choice.has_known) {
    SharedPart train(store, Part::kTrain, "count vectors of the training part", progress);
    if (absl::Status s = AddCounts(&train, threads, &choice.known); !s.ok()) return s;
  }
  // Of a block.
  struct Scores {
    std::vector<HeldOutScore> alone, others;
    uint64_t new_counts = 0;
  };
  SharedPart held_out(store, Part::kHeldOut, "limits from held-out sequences", progress);
  std::vector<Scores> scores(held_out.blocks().size());
  std::vector<std::unique_ptr<LstmPass>> passes(threads);
  const auto judge = [&](uint32_t thread, size_t block, const Sequences& sequences) -> absl::Status {
    if (passes[thread] == nullptr) passes[thread] = std::make_unique<LstmPass>(&layout);
    std::vector<uint32_t> all(sequences.size());
    std::iota(all.begin(), all.end(), 0);
    const SequenceBatch batch = MakeBatch(sequences, all, 1);
    const auto rows = static_cast<uint32_t>(batch.rows.size());
    for (uint32_t first = 0, last = 0; first < rows; first = last) {
      last = EndOfRowsTogether(layout, batch, first);
      const auto judged = JudgeRows(weights, batch, first, last, classes, passes[thread].get());
      for (uint32_t row = first; row < last; ++row) {
        HeldOutScore score = WorstOf(judged[row - first], batch.weights[row]);
        scores[block].alone.push_back(score);
        if (choice.known.Contains(ClassesOf(batch.rows, row), batch.rows.cut[row] != 0)) {
          score.least_probability = 1;
          score.greatest_rank = 0;
        } else if (!score.has_unknown) {
          scores[block].new_counts += score.weight;
        }
        scores[block].others.push_back(score);
      }
      if (absl::Status s = held_out.Count(SequencesOf(batch, first, last)); !s.ok()) return s;
    }
    return absl::OkStatus();
  };
  if (absl::Status s = held_out.ForEachBlock(threads, judge); !s.ok()) return s;
  std::vector<HeldOutScore> alone, others;
  for (const Scores& block : scores) {
    alone.insert(alone.end(), block.alone.begin(), block.alone.end());
    others.insert(others.end(), block.others.begin(), block.others.end());
    choice.new_counts += block.new_counts;
  }
  choice.alone = ChooseLimits(detect, std::move(alone), classes);
  if (!choice.has_known) return choice;
  choice.others = ChooseLimits(detect, std::move(others), classes);
  // Only now: what was held out has told how often a new sequence has counts that are new.
  SharedPart held_counts(store, Part::kHeldOut, "count vectors of the held-out part", progress);
  if (absl::Status s = AddCounts(&held_counts, threads, &choice.known); !s.ok()) return s;
  return choice;
}

}  // namespace skein
