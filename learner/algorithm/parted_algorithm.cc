// SPDX-License-Identifier: Apache-2.0
#include "learner/algorithm/parted_algorithm.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "learner/ranks/part_groups.h"

namespace skein {

PartedAlgorithm::PartedAlgorithm(std::vector<std::unique_ptr<Collective>> groups)
    : groups_(std::move(groups)), team_(static_cast<int>(groups_.size()) - 1) {}

absl::StatusOr<std::unique_ptr<Algorithm>> PartedAlgorithm::Make(
    const v1::LearnerConfig& config, Collective* ranks,
    const std::function<absl::StatusOr<std::unique_ptr<Algorithm>>(Collective* part)>& make) {
  auto groups = ConnectParts(ranks, config.gradient_parts(), absl::Seconds(config.collective_timeout_seconds()));
  if (!groups.ok()) return groups.status();
  std::unique_ptr<PartedAlgorithm> algorithm(new PartedAlgorithm(*std::move(groups)));
  for (const auto& group : algorithm->groups_) {
    auto part = make(group.get());
    if (!part.ok()) return part.status();
    algorithm->parts_.push_back(*std::move(part));
  }
  algorithm->team_.Run(algorithm->team_.size(),
                       [&](int) { at::set_num_threads(static_cast<int>(config.torch_threads())); });
  return algorithm;
}

absl::Status PartedAlgorithm::OnAll(const std::function<absl::Status(size_t part)>& work) {
  absl::Mutex mutex;
  absl::Status first;
  team_.Run(team_.size(), [&](int part) {
    const absl::Status status = work(static_cast<size_t>(part));
    const absl::MutexLock lock(&mutex);
    first.Update(status);
  });
  return first;
}

void PartedAlgorithm::SetSettings(const v1::RunConfig& config) {
  for (const auto& part : parts_) part->SetSettings(config);
}

absl::StatusOr<UpdateStats> PartedAlgorithm::Update(const Batch& batch, double progress, uint64_t iteration) {
  const auto parts = static_cast<int64_t>(parts_.size());
  const int64_t columns = batch["reward"].size(1);
  // Parts have whole environments.
  const char* const of_envs = batch.has("ended") ? "ended" : batch.has("state") ? "state" : "reward";
  const int64_t envs = batch[of_envs].size(1), agents = envs > 0 ? columns / envs : 1;
  steps_ = batch["reward"].size(0);
  std::vector<UpdateStats> stats(parts_.size());
  const absl::Status updated = OnAll([&](size_t i) {
    const auto part = static_cast<int64_t>(i);
    const int64_t begin = envs * part / parts * agents, end = envs * (part + 1) / parts * agents;
    auto its = parts_[i]->Update(ColumnsOf(batch, begin, end - begin), progress, iteration);
    if (its.ok()) stats[i] = *std::move(its);
    return its.status();
  });
  if (!updated.ok()) return updated;
  return stats.front();
}

StateTensors PartedAlgorithm::SampleStats() const {
  StateTensors all = first().SampleStats();
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<torch::Tensor> columns;
    for (const auto& part : parts_) {
      const torch::Tensor stat = part->SampleStats()[i].second;
      columns.push_back(stat.view({steps_, stat.numel() / steps_}));
    }
    all[i].second = torch::cat(columns, 1).flatten();
  }
  return all;
}

absl::Status PartedAlgorithm::Restore(const StateTensors& model, const StateTensors& optimizer) {
  for (const auto& part : parts_) {
    if (absl::Status s = part->Restore(model, optimizer); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status PartedAlgorithm::Synchronize() {
  return OnAll([this](size_t part) { return parts_[part]->Synchronize(); });
}

}  // namespace skein
