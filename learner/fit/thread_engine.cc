// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/process/cores.h"
#include "learner/fit/fit_engine.h"
#include "learner/optimize/thread_team.h"
#include "learner/sequence/lstm_pass.h"

namespace skein {
namespace {

uint32_t ThreadsFor(const v1::FitTrainConfig& train, uint32_t parts) {
  const uint32_t wanted = train.threads() > 0 ? train.threads() : Cores();
  return std::min(wanted, parts);
}

class ThreadEngine : public FitEngine {
 public:
  ThreadEngine(const v1::FitTrainConfig& train, const NetLayout* layout, uint32_t parts, torch::Tensor parameters)
      : layout_(*layout),
        parameters_(std::move(parameters)),
        weights_(layout),
        team_(static_cast<int>(ThreadsFor(train, parts)) - 1),
        parts_(parts) {
    for (int i = 0; i < team_.size(); ++i) passes_.push_back(std::make_unique<LstmPass>(layout));
    for (Part& part : parts_) part.limit = std::make_unique<MemoryLimit>(train.micro_batch_size(), kFitWords);
  }

  absl::Status Gradient(const SequenceBatch& batch, PartRange parts, double scale, torch::Tensor gradient,
                        std::vector<double>* losses) override {
    const auto size = static_cast<size_t>(layout_.size);
    for (Part& part : parts_) part.gradient.resize(size);
    const absl::Status status =
        ForEach(batch, parts, losses, [&](LstmPass* pass, const PackedSteps& steps, Part* part) {
          pass->Backward(weights_, steps, static_cast<float>(scale), part->gradient.data());
        });
    if (!status.ok()) return status;
    // In the order of parts, each thread a range of the numbers.
    float* const sum = gradient.data_ptr<float>();
    const auto threads = static_cast<size_t>(team_.size());
    team_.Run(team_.size(), [&](int thread) {
      const size_t begin = size * static_cast<size_t>(thread) / threads,
                   end = size * (static_cast<size_t>(thread) + 1) / threads;
      std::copy(parts_[0].gradient.begin() + static_cast<std::ptrdiff_t>(begin),
                parts_[0].gradient.begin() + static_cast<std::ptrdiff_t>(end), sum + begin);
      for (size_t part = 1; part < parts_.size(); ++part) {
        const float* const more = parts_[part].gradient.data();
        for (size_t i = begin; i < end; ++i) sum[i] += more[i];
      }
    });
    return absl::OkStatus();
  }

  absl::Status Loss(const SequenceBatch& batch, PartRange parts, std::vector<double>* losses) override {
    return ForEach(batch, parts, losses, nullptr);
  }

  uint64_t sequences() const override {
    uint64_t sum = 0;
    for (const Part& part : parts_) sum += part.sequences;
    return sum;
  }
  int64_t out_of_memory() const override {
    int64_t sum = 0;
    for (const Part& part : parts_) sum += part.limit->out_of_memory();
    return sum;
  }
  void SetMemoryProbe(std::function<void(int64_t)> probe) override {
    for (Part& part : parts_) part.limit->SetProbe(probe);
  }

 private:
  struct Part {
    AlignedFloats gradient;
    std::unique_ptr<MemoryLimit> limit;
    absl::Status status;
    uint64_t sequences = 0;
  };

  // Forward of each part's rows, in micro-batches, then `after`, if it is given, by all threads.
  absl::Status ForEach(const SequenceBatch& batch, PartRange parts, std::vector<double>* losses,
                       const std::function<void(LstmPass*, const PackedSteps&, Part*)>& after) {
    weights_.Update(parameters_.data_ptr<float>());
    losses->assign(parts.last - parts.first, 0);
    team_.Run(team_.size(), [&](int thread) {
      LstmPass& pass = *passes_[static_cast<size_t>(thread)];
      for (auto i = static_cast<size_t>(thread); i < parts_.size(); i += static_cast<size_t>(team_.size())) {
        const uint32_t begin = batch.parts[parts.first + i], end = batch.parts[parts.first + i + 1];
        Part& part = parts_[i];
        double& loss = (*losses)[i];
        MemoryLimit::Work work;
        work.begin = [&] {
          loss = 0;
          part.sequences = 0;
          if (after) std::fill(part.gradient.begin(), part.gradient.end(), 0.0f);
          return absl::OkStatus();
        };
        work.piece = [&](int64_t first, int64_t rows, bool) {
          const uint32_t from = begin + static_cast<uint32_t>(first);
          const uint32_t to = from + static_cast<uint32_t>(rows);
          const PackedSteps steps = PackRows(batch, from, to);
          loss += pass.Forward(weights_, steps);
          if (after) after(&pass, steps, &part);
          part.sequences += SequencesOf(batch, from, to);
        };
        part.status = part.limit->Run(end - begin, work);
      }
    });
    absl::Status status;
    for (const Part& part : parts_) status.Update(part.status);
    return status;
  }

  const NetLayout& layout_;
  const torch::Tensor parameters_;
  NetWeights weights_;
  ThreadTeam team_;
  std::vector<std::unique_ptr<LstmPass>> passes_;  // By thread.
  std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<FitEngine> MakeThreadEngine(const v1::FitTrainConfig& train, const NetLayout* layout, uint32_t parts,
                                            torch::Tensor parameters) {
  return std::make_unique<ThreadEngine>(train, layout, parts, std::move(parameters));
}

}  // namespace skein
