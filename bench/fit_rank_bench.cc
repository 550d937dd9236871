// SPDX-License-Identifier: Apache-2.0
#include "bench/fit_rank_bench.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/message_settings.h"
#include "base/process/clock.h"
#include "base/process/cores.h"
#include "bench/fit_rank_steps.h"
#include "bench/machine.h"
#include "bench/rank_report.h"
#include "bench/rank_rounds.h"
#include "bench/thread_environment.h"
#include "bench/verb.h"
#include "learner/network/torch_version.h"
#include "learner/sequence/fit_settings.h"

namespace skein {

v1::FitConfig OfOneRank(const v1::FitConfig& config, uint32_t most) {
  v1::FitConfig one = config;
  v1::FitTrainConfig* const train = one.mutable_train();
  train->set_batch_size(std::max(1u, train->batch_size() / most));
  train->set_parts(std::max(1u, train->parts() / most));
  return one;
}

uint32_t FitThreads(const v1::FitTrainConfig& train) {
  const uint32_t parts = PartsFor(train, 1);
  if (train.threads() > 0 && train.precision() == v1::PRECISION_BF16) return train.threads();
  return std::min(parts, train.threads() > 0 ? train.threads() : Cores());
}

absl::Status RunFitRankBench(const BenchOptions& options, const v1::FitConfig& config, std::vector<int> learners,
                             uint32_t length, const std::string& what, const ShutdownSignal& shutdown) {
  std::sort(learners.begin(), learners.end());
  learners.erase(std::unique(learners.begin(), learners.end()), learners.end());
  const auto most = static_cast<uint32_t>(learners.back());
  const v1::FitTrainConfig one = OfOneRank(config, most).train();
  v1::FitConfig of_all = config;
  of_all.mutable_train()->set_batch_size(one.batch_size() * most);
  ProgressLine progress = StderrProgress();
  progress.Show("reading the data", -absl::Seconds(1));
  const auto data = FitData::Open(of_all, length, [&] { return shutdown.signalled(); });
  if (!data.ok()) return data.status();
  v1::FitConfig of_one = (*data)->config();
  of_one.mutable_train()->set_batch_size(one.batch_size());
  of_one.mutable_train()->set_parts(one.parts());

  Report report;
  report.machine = DescribeMachine(TorchVersion());
  report.config = DescribeConfig("fit", options, of_one);
  report.config["learners"] = learners;
  report.config["threads"] = FitThreads(of_one.train());
  report.config["data"] = what;
  RankRounds::Options crews;
  crews.job = {kFitRankVerb, SettingsYaml(of_one), (*data)->store_path()};
  crews.combine = CombineFitRanks;
  crews.stopped = [&] { return shutdown.signalled(); };
  RankRounds rounds(std::move(crews));
  progress.Show("starting the ranks", -absl::Seconds(1));
  if (absl::Status s = rounds.Start(learners, absl::Seconds(options.seconds)); !s.ok()) return s;
  const absl::Duration begin = MonotonicNow();
  for (int round = 1; round <= options.rounds; ++round) {
    const absl::Duration left =
        round > 1 ? (MonotonicNow() - begin) / (round - 1) * (options.rounds - round + 1) : -absl::Seconds(1);
    progress.Show(absl::StrCat("round ", round, "/", options.rounds), left);
    auto rows = rounds.Round(round);
    if (!rows.ok()) return rows.status();
    AddEfficiency(kTokenRate, &*rows);
    report.rows.insert(report.rows.end(), rows->begin(), rows->end());
  }
  progress.Clear();
  report.summary = SummarizeRanks(FitRankTable(), report.rows);
  if (options.json_path == "-") return WriteReport(report, "-");
  const v1::FitModelConfig& model = of_one.model();
  std::cout << FormatRankReport(
                   FitRankTable(), report,
                   absl::StrCat("skein fit: gradient steps of ", absl::StrJoin(learners, ", "), " ranks, each with ",
                                one.batch_size(), " sequences of ", what, " and ", FitThreads(of_one.train()),
                                " threads, ", (*data)->store().vocabulary().classes(), " classes, embedding ",
                                model.embedding(), ", LSTM ", model.hidden(), " x ", model.layers()))
            << std::flush;
  return options.json_path.empty() ? absl::OkStatus() : WriteReport(report, options.json_path);
}

absl::StatusOr<RankWork> MakeFitRankWork(const RankWorkerOptions& options, const RankPlace& place) {
  const auto config = LoadFitConfig(options.config_path, {});
  if (!config.ok()) return config.status();
  if (absl::Status s = EnsureTorchThreads(FitThreads(config->train())); !s.ok()) return s;
  auto steps = FitRankSteps::Make(*config, options.data_path, place);
  if (!steps.ok()) return steps.status();
  return RankWork([steps = std::shared_ptr<FitRankSteps>(*std::move(steps))](RankMode mode, int64_t count) {
    return steps->Run(mode, count);
  });
}

}  // namespace skein
