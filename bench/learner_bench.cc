// SPDX-License-Identifier: Apache-2.0
// skein bench learner: our update against a plain LibTorch one on the same batch; or, with --learners or --parameters,
// that of several ranks against as many independent ones.
#include <cstdlib>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/config/config.h"
#include "base/process/clock.h"
#include "bench/bare_update.h"
#include "bench/rank_bench.h"
#include "bench/rank_updates.h"
#include "bench/rank_worker.h"
#include "bench/synthetic_batch.h"
#include "bench/thread_environment.h"
#include "bench/verb.h"
#include "bench/verbs.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "learner/run/trainer.h"

namespace skein {
namespace {

constexpr char kRate[] = "samples_per_second";

// Repeats `update`, which returns the samples it trained on, for `duration`. Both contestants say the same things.
template <typename Update>
absl::StatusOr<Json> MeasureUpdates(const std::string& prefix, absl::Duration duration, Update update) {
  const absl::Duration begin = MonotonicNow();
  double samples = 0;
  int64_t updates = 0;
  while (updates == 0 || MonotonicNow() - begin < duration) {
    const absl::StatusOr<double> trained = update();
    if (!trained.ok()) return trained.status();
    samples += *trained;
    ++updates;
  }
  const double seconds = absl::ToDoubleSeconds(MonotonicNow() - begin);
  return Json{{absl::StrCat(prefix, kRate), samples / seconds},
              {absl::StrCat(prefix, "seconds_per_update"), seconds / static_cast<double>(updates)},
              {absl::StrCat(prefix, "microseconds_per_sample"), 1e6 * seconds / samples}};
}

absl::Status RunLearnerBench(const BenchOptions& options, const ShutdownSignal& shutdown) {
  const auto plan = PlanBenchRun(options, "auto");
  if (!plan.ok()) return plan.status();
  const v1::RunConfig& config = plan->config;
  if (absl::Status s = CheckWritable(options.json_path); !s.ok()) return s;
  if (absl::Status s = EnsureTorchThreads(config.learner().torch_threads()); !s.ok()) return s;
  ProgressLine progress = StderrProgress();
  progress.Show("making one iteration's data", -absl::Seconds(1));

  const auto spec = FindEnvSpec(config.env().id(), MakeEnvOptions(config.env()));
  if (!spec.ok()) return spec.status();
  const auto trainer = Trainer::Make(config, *spec);
  if (!trainer.ok()) return trainer.status();
  const auto bare = BareUpdate::Make(config, *spec);
  if (!bare.ok()) return bare.status();
  const auto snapshot = (*trainer)->Snapshot(1);
  if (!snapshot.ok()) return snapshot.status();
  const auto batch = MakeSyntheticBatch(config, *spec, **snapshot);
  if (!batch.ok()) return batch.status();

  const double size = static_cast<double>((*batch)->steps() * (*batch)->columns());
  uint64_t iteration = 0;
  VerbRun run;
  run.heading = absl::StrCat(config.env().id(), ": our update against plain LibTorch, ", size, " samples x ",
                             config.ppo().epochs(), " epochs, minibatch ", config.ppo().minibatch_size(), ", ",
                             config.learner().torch_threads(), " Torch threads, samples/s");
  run.config = DescribeConfig("learner", options, config);
  run.contest.rate = kRate;
  run.contest.ours_title = "Trainer";
  run.contest.limit_title = "LibTorch";
  run.contest.ours = [&](absl::Duration duration) {
    return MeasureUpdates("", duration, [&]() -> absl::StatusOr<double> {
      const auto stats = (*trainer)->Update(batch->get(), 0, iteration++);
      if (!stats.ok()) return stats.status();
      return size * stats->at("epochs");
    });
  };
  run.contest.limit = [&](absl::Duration duration) {
    return MeasureUpdates("limit_", duration, [&]() -> absl::StatusOr<double> {
      if (absl::Status s = (*bare)->Update(**batch); !s.ok()) return s;
      return size * config.ppo().epochs();
    });
  };
  run.columns = {{"microseconds_per_sample", "us/sample"}};
  // The first pass allocates what later ones use again.
  if (const auto s = run.contest.ours(absl::ZeroDuration()); !s.ok()) return s.status();
  if (const auto s = run.contest.limit(absl::ZeroDuration()); !s.ok()) return s.status();
  return MeasureAndReport(run, options, shutdown, &progress);
}

absl::StatusOr<RankWork> MakeLearnerRankWork(const RankWorkerOptions& options, const RankPlace& place) {
  const auto config = ReadRunConfig(options.config_path, {});
  if (!config.ok()) return config.status();
  if (absl::Status s = EnsureTorchThreads(config->learner().torch_threads()); !s.ok()) return s;
  auto updates = RankUpdates::Make(*config, place);
  if (!updates.ok()) return updates.status();
  return RankWork([updates = std::shared_ptr<RankUpdates>(*std::move(updates))](RankMode mode, int64_t count) {
    return updates->Run(mode, count);
  });
}

}  // namespace

void AddBenchLearner(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("learner", "Our update against the bare LibTorch update loop; learner ranks");
  auto options = std::make_shared<RankBenchOptions>();
  auto device = std::make_shared<std::string>();
  auto memory = std::make_shared<std::string>();
  AddBenchFlags(verb, &options->bench);
  verb->add_option("--learners", options->learners,
                   "Numbers of learner ranks, e.g. 1,2,4: what summing gradients costs")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1024));
  verb->add_option("--parameters", options->parameters,
                   "Sizes of the networks, about, e.g. 10000,1000000; each with each of --learners")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(int64_t{1}, int64_t{1000000000}));
  verb->add_option("--batch", options->batch,
                   "Samples of each learner in an update; default: the configuration's, shared among most learners")
      ->check(CLI::Range(1, 16777216));
  verb->add_option("--minibatch", options->minibatch, "Of these, in a gradient step; default likewise")
      ->check(CLI::Range(1, 16777216));
  verb->add_option("--device", *device, "auto, cpu or cuda:N; learner.device");
  verb->add_option("--memory", *memory, "none, gru or lstm; model.memory");
  verb->footer(
      "With --learners or --parameters an update is one epoch, and --batch and --minibatch count.\nExamples:\n"
      "  skein bench learner --env HalfCheetah-v5 --set ppo.minibatch_size=2048 --json learner.json\n"
      "  skein bench learner --env HalfCheetah-v5 --memory lstm\n"
      "  skein bench learner --learners 1,2,4 --parameters 10000,1000000");
  verb->callback([options, device, memory, action] {
    if (!memory->empty()) {
      auto& overrides = options->bench.overrides;
      overrides.insert(overrides.begin(), absl::StrCat("model.memory=", nlohmann::json(*memory).dump(-1, ' ', true)));
    }
    if (!device->empty()) {
      auto& overrides = options->bench.overrides;
      overrides.insert(overrides.begin(), absl::StrCat("learner.device=", nlohmann::json(*device).dump(-1, ' ', true)));
    }
    *action = [options](const ShutdownSignal& shutdown) {
      if (!options->learners.empty() || !options->parameters.empty()) return RunRankBench(*options, shutdown);
      if (options->batch || options->minibatch) {
        return absl::InvalidArgumentError("--batch and --minibatch want --learners or --parameters");
      }
      return RunLearnerBench(options->bench, shutdown);
    };
  });
  AddRankWorker(app, kLearnerRankVerb, MakeLearnerRankWork, action);
}

}  // namespace skein
