// SPDX-License-Identifier: Apache-2.0
#include "bench/fit_rank_steps.h"

#include <utility>

#include "absl/time/time.h"
#include "base/process/clock.h"
#include "bench/fit_data.h"
#include "learner/fit/fit_trainer.h"
#include "learner/ranks/collective.h"
#include "learner/ranks/training_device.h"
#include "learner/sequence/sequence_store.h"

namespace skein {

struct FitRankSteps::Impl {
  // One way to train.
  struct Way {
    v1::FitConfig config;
    std::unique_ptr<FitTrainer> trainer;
    std::unique_ptr<BatchLoop> batches;
  };
  absl::Status Prepare(const v1::FitConfig& config, Collective* sums, Way* way) const {
    auto trainer = FitTrainer::Make(config, store->vocabulary(), sums, place.rank);
    if (!trainer.ok()) return trainer.status();
    *way = {config, *std::move(trainer), std::make_unique<BatchLoop>(config, store.get())};
    return absl::OkStatus();
  }

  RankPlace place;
  std::string device;
  std::unique_ptr<SequenceStore> store;
  std::unique_ptr<Collective> collective;
  Way alone, summing;  // They end before what they use.
};

FitRankSteps::FitRankSteps(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FitRankSteps::~FitRankSteps() = default;

absl::StatusOr<std::unique_ptr<FitRankSteps>> FitRankSteps::Make(const v1::FitConfig& config,
                                                                 const std::string& store_path,
                                                                 const RankPlace& place) {
  auto impl = std::make_unique<Impl>();
  impl->place = place;
  const auto device = ParseTrainingDevice(config.train().device(), place.rank, "train.device");
  if (!device.ok()) return device.status();
  impl->device = device->str();
  auto collective =
      ConnectRanks(place, config.train().device(), absl::Seconds(config.train().collective_timeout_seconds()));
  if (!collective.ok()) return collective.status();
  impl->collective = *std::move(collective);
  auto store = SequenceStore::Open(config, store_path, [](double) { return true; });
  if (!store.ok()) return store.status();
  impl->store = *std::move(store);
  if (absl::Status s = impl->Prepare(config, nullptr, &impl->alone); !s.ok()) return s;
  v1::FitConfig of_all = config;
  const auto ranks = static_cast<uint32_t>(place.ranks);
  of_all.mutable_train()->set_batch_size(config.train().batch_size() * ranks);
  of_all.mutable_train()->set_parts(config.train().parts() * ranks);
  if (absl::Status s = impl->Prepare(of_all, impl->collective.get(), &impl->summing); !s.ok()) return s;
  return std::unique_ptr<FitRankSteps>(new FitRankSteps(std::move(impl)));
}

absl::StatusOr<Json> FitRankSteps::Run(RankMode mode, int64_t steps) {
  const bool sums = mode == RankMode::kSumming;
  Impl::Way& way = sums ? impl_->summing : impl_->alone;
  if (const auto all = impl_->collective->GatherBytes("ready"); !all.ok()) return all.status();
  const absl::Duration begin = MonotonicNow();
  absl::Duration waited;
  double tokens = 0;
  for (int64_t i = 0; i < steps; ++i) {
    const absl::Duration asked = MonotonicNow();
    const auto batch = way.batches->Next();
    waited += MonotonicNow() - asked;
    if (!batch.ok()) return batch.status();
    if (const auto step = way.trainer->Step(**batch, way.config.train().lr(), false); !step.ok()) return step.status();
    tokens += static_cast<double>((*batch)->steps) / (sums ? impl_->place.ranks : 1);
  }
  return Json{{"seconds", absl::ToDoubleSeconds(MonotonicNow() - begin)},
              {"tokens", tokens},
              {"updates", steps},
              {"data_wait_seconds", absl::ToDoubleSeconds(waited)},
              {"device", impl_->device}};
}

}  // namespace skein
