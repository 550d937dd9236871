// SPDX-License-Identifier: Apache-2.0
#include "bench/rank_bench.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "base/process/clock.h"
#include "bench/bare_update.h"
#include "bench/machine.h"
#include "bench/network_size.h"
#include "bench/rank_report.h"
#include "bench/rank_rounds.h"
#include "bench/rank_worker.h"
#include "bench/verb.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "learner/network/torch_version.h"

namespace skein {
namespace {

std::vector<int> Crews(const RankBenchOptions& options) {
  const std::set<int> learners(options.learners.begin(), options.learners.end());
  return learners.empty() ? std::vector<int>{1} : std::vector<int>(learners.begin(), learners.end());
}

// All crews of one size of network, measured in turn.
RankRounds SizeRounds(const v1::RunConfig& config, int64_t parameters, std::function<bool()> stopped) {
  RankRounds::Options options;
  options.job = {kLearnerRankVerb, ToYaml(config), ""};
  options.head = {{"parameters", parameters},
                  {"hidden", std::vector<uint32_t>(config.model().hidden().begin(), config.model().hidden().end())}};
  options.combine = CombineRanks;
  options.stopped = std::move(stopped);
  return RankRounds(std::move(options));
}

}  // namespace

absl::StatusOr<v1::RunConfig> PlanRankBench(const RankBenchOptions& options) {
  BenchOptions bench = options.bench;
  const auto epochs = AlgorithmOverrides(bench, {{"epochs", 1}});  // All epochs cost the same.
  if (!epochs.ok()) return epochs.status();
  bench.overrides.insert(bench.overrides.begin(), epochs->begin(), epochs->end());
  const auto whole = PlanBenchRun(bench, "auto");
  if (!whole.ok()) return whole.status();
  const uint32_t most = static_cast<uint32_t>(Crews(options).back()), envs = whole->config.rollout().num_envs();
  const uint32_t share = whole->config.rollout().steps_per_iteration() / most;
  const uint32_t batch = options.batch.value_or(std::max(envs, share / envs * envs));
  const uint32_t minibatch = options.minibatch.value_or(std::clamp(MinibatchSize(whole->config) / most, 1u, batch));
  bench.overrides.push_back(absl::StrCat("rollout.steps_per_iteration=", batch));
  const auto size = AlgorithmOverrides(bench, {{"minibatch_size", minibatch}});
  if (!size.ok()) return size.status();
  bench.overrides.insert(bench.overrides.end(), size->begin(), size->end());
  auto plan = PlanBenchRun(bench, "auto");
  if (!plan.ok()) return plan.status();
  return plan->config;
}

absl::Status RunRankBench(const RankBenchOptions& options, const ShutdownSignal& shutdown) {
  const auto config = PlanRankBench(options);
  if (!config.ok()) return config.status();
  if (absl::Status s = CheckWritable(options.bench.json_path); !s.ok()) return s;
  const auto spec = FindEnvSpec(config->env().id(), MakeEnvOptions(config->env()));
  if (!spec.ok()) return spec.status();
  const std::vector<int> learners = Crews(options);
  const absl::Duration duration = absl::Seconds(options.bench.seconds);

  std::vector<v1::RunConfig> sizes;
  for (const int64_t parameters : options.parameters) {
    sizes.push_back(*config);
    FitHiddenLayers(parameters, *spec, sizes.back().mutable_model());
  }
  if (sizes.empty()) sizes.push_back(*config);

  Report report;
  report.machine = DescribeMachine(TorchVersion());
  report.config = DescribeConfig("learner", options.bench, *config);
  report.config["learners"] = learners;
  report.config["parameters"] = options.parameters;
  ProgressLine progress = StderrProgress();
  const absl::Duration begin = MonotonicNow();
  int measured = 0;
  const int all = static_cast<int>(sizes.size()) * options.bench.rounds;
  for (const v1::RunConfig& size : sizes) {
    const int64_t parameters = CountParameters(size.model(), *spec);
    const auto show = [&](const std::string& what) {
      const absl::Duration left =
          measured > 0 ? (MonotonicNow() - begin) / measured * (all - measured) : -absl::Seconds(1);
      progress.Show(absl::StrCat(parameters, " parameters: ", what), left);
    };
    show("starting the ranks");
    RankRounds rounds = SizeRounds(size, parameters, [&] { return shutdown.signalled(); });
    if (absl::Status s = rounds.Start(learners, duration); !s.ok()) return s;
    for (int round = 1; round <= options.bench.rounds; ++round, ++measured) {
      show(absl::StrCat("round ", round, "/", options.bench.rounds));
      auto rows = rounds.Round(round);
      if (!rows.ok()) return rows.status();
      AddEfficiency(kSampleRate, &*rows);
      report.rows.insert(report.rows.end(), rows->begin(), rows->end());
    }
  }
  progress.Clear();
  report.summary = SummarizeRanks(LearnerRankTable(), report.rows);
  if (options.bench.json_path == "-") return WriteReport(report, "-");
  std::cout << FormatRankReport(LearnerRankTable(), report,
                                absl::StrCat(config->env().id(), ": updates of ", absl::StrJoin(learners, ", "),
                                             " learners, each with ", config->rollout().steps_per_iteration(),
                                             " samples in minibatches of ", MinibatchSize(*config), ", on ",
                                             report.rows[0].value("device", "?"), ", ",
                                             config->learner().torch_threads(), " Torch threads"))
            << std::flush;
  return options.bench.json_path.empty() ? absl::OkStatus() : WriteReport(report, options.bench.json_path);
}

}  // namespace skein
