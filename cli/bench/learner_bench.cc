// SPDX-License-Identifier: Apache-2.0
// skein bench learner: our update against a plain LibTorch one on the same batch.
#include <cstdlib>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "cli/bench/bare_update.h"
#include "cli/bench/synthetic_batch.h"
#include "cli/bench/thread_environment.h"
#include "cli/bench/verb.h"
#include "cli/bench/verbs.h"
#include "env/registry.h"
#include "learner/trainer.h"

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

  const auto spec = FindEnvSpec(config.env().id());
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
      const auto figures = (*trainer)->Update(batch->get(), 0, iteration++);
      if (!figures.ok()) return figures.status();
      return size * figures->at("epochs");
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

}  // namespace

void AddBenchLearner(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("learner", "Our update against the bare LibTorch update loop");
  auto options = std::make_shared<BenchOptions>();
  AddBenchFlags(verb, options.get());
  verb->footer(
      "Example:\n  skein bench learner --env HalfCheetah-v5 --set ppo.minibatch_size=2048 --json learner.json");
  verb->callback([options, action] {
    *action = [options](const ShutdownSignal& shutdown) { return RunLearnerBench(*options, shutdown); };
  });
}

}  // namespace skein
