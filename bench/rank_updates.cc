// SPDX-License-Identifier: Apache-2.0
#include "bench/rank_updates.h"

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/config/algorithm_rules.h"
#include "base/process/clock.h"
#include "bench/synthetic_batch.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "learner/ranks/collective.h"
#include "learner/ranks/training_device.h"
#include "learner/run/trainer.h"

namespace skein {

struct RankUpdates::Impl {
  RankPlace place;
  std::string device;
  std::unique_ptr<Collective> collective;
  std::unique_ptr<Columns> batch;
  std::unique_ptr<Trainer> alone, summing;
  uint64_t iteration = 0;
};

RankUpdates::RankUpdates(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RankUpdates::~RankUpdates() = default;

absl::StatusOr<std::unique_ptr<RankUpdates>> RankUpdates::Make(const v1::RunConfig& config, const RankPlace& place) {
  auto impl = std::make_unique<Impl>();
  impl->place = place;
  const auto spec = FindEnvSpec(config.env().id(), MakeEnvOptions(config.env()));
  if (!spec.ok()) return spec.status();
  const auto device = ParseTrainingDevice(config.learner().device(), place.rank);
  if (!device.ok()) return device.status();
  impl->device = device->str();
  auto collective =
      ConnectRanks(place, config.learner().device(), absl::Seconds(config.learner().collective_timeout_seconds()));
  if (!collective.ok()) return collective.status();
  impl->collective = *std::move(collective);

  auto alone = Trainer::Make(config, *spec, nullptr, place.rank);
  if (!alone.ok()) return alone.status();
  impl->alone = *std::move(alone);
  v1::RunConfig of_all = config;
  SetMinibatchSize(MinibatchSize(config) * static_cast<uint32_t>(place.ranks), &of_all);
  auto summing = Trainer::Make(of_all, *spec, impl->collective.get(), place.rank);
  if (!summing.ok()) return summing.status();
  impl->summing = *std::move(summing);
  const auto snapshot = impl->alone->Snapshot(1);
  if (!snapshot.ok()) return snapshot.status();
  auto batch = MakeSyntheticBatch(config, *spec, **snapshot);
  if (!batch.ok()) return batch.status();
  impl->batch = *std::move(batch);
  return std::unique_ptr<RankUpdates>(new RankUpdates(std::move(impl)));
}

absl::StatusOr<Json> RankUpdates::Run(RankMode mode, int64_t updates) {
  Columns& batch = *impl_->batch;
  const bool sums = mode == RankMode::kSumming;
  Trainer& trainer = sums ? *impl_->summing : *impl_->alone;
  const int64_t columns = batch.columns();
  const int64_t offset = sums ? columns * impl_->place.rank : 0, total = sums ? columns * impl_->place.ranks : columns;
  const Trainer::Reduction before = trainer.reduction();
  if (const auto all = impl_->collective->GatherBytes("ready"); !all.ok()) return all.status();

  const absl::Duration begin = MonotonicNow();
  double epochs = 0, steps = 0;
  for (int64_t i = 0; i < updates; ++i) {
    const auto stats = trainer.Update(&batch, 0, impl_->iteration++, offset, total);
    if (!stats.ok()) return stats.status();
    epochs += stats->Get("epochs", 1);
    steps += stats->at("gradient_steps") + stats->Get("skipped_steps", 0);
  }
  Json said = {{"seconds", absl::ToDoubleSeconds(MonotonicNow() - begin)},
               {"samples", static_cast<double>(batch.steps() * columns) * epochs},
               {"updates", updates},
               {"gradient_steps", steps},
               {"device", impl_->device}};
  if (!sums) return said;
  const Trainer::Reduction after = trainer.reduction();
  said["all_reduces"] = after.all_reduces - before.all_reduces;
  said["bytes_sent"] = after.bytes_sent - before.bytes_sent;
  said["all_reduce_seconds"] = absl::ToDoubleSeconds(after.all_reducing - before.all_reducing);
  said["exposed_seconds"] = absl::ToDoubleSeconds(after.exposed - before.exposed);
  return said;
}

}  // namespace skein
