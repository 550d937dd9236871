// SPDX-License-Identifier: Apache-2.0
// skein bench fit: the gradient steps of `skein fit` against the same model in plain LibTorch, on the same batches; or,
// with --learners, those of several ranks against as many independent ones.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/process/clock.h"
#include "bench/bare_fit.h"
#include "bench/fit_data.h"
#include "bench/fit_rank_bench.h"
#include "bench/fit_steps.h"
#include "bench/rank_report.h"
#include "bench/rank_worker.h"
#include "bench/thread_environment.h"
#include "bench/verb.h"
#include "bench/verbs.h"
#include "learner/sequence/fit_settings.h"

namespace skein {
namespace {

constexpr uint32_t kVocabulary = 29;  // Of made-up sequences: about that of the HDFS log.

struct FitBenchOptions {
  BenchOptions bench;
  std::optional<uint32_t> vocabulary, embedding, hidden, layers, batch_size;
  uint32_t length = 20;           // Of made-up sequences.
  std::vector<std::string> data;  // Empty: made up.
  std::string device;
  std::vector<int> learners;  // Numbers of ranks; empty: one, against plain LibTorch.
};

// The configuration with flags and defaults applied; data.files is that of --data. Errors as LoadFitConfig.
absl::StatusOr<v1::FitConfig> PlanFitBench(const FitBenchOptions& options) {
  std::vector<std::string> overrides;
  for (const auto& [name, value] : {std::pair{"model.vocabulary", options.vocabulary},
                                    {"model.embedding", options.embedding},
                                    {"model.hidden", options.hidden},
                                    {"model.layers", options.layers},
                                    {"train.batch_size", options.batch_size}}) {
    if (value) overrides.push_back(absl::StrCat(name, "=", *value));
  }
  if (!options.device.empty()) {
    overrides.push_back(absl::StrCat("train.device=", nlohmann::json(options.device).dump(-1, ' ', true)));
  }
  if (options.bench.seed) overrides.push_back(absl::StrCat("seed=", *options.bench.seed));
  overrides.insert(overrides.end(), options.bench.overrides.begin(), options.bench.overrides.end());
  auto config = LoadFitConfig(options.bench.config_path, overrides);
  if (!config.ok()) return config.status();
  config->mutable_data()->set_files(absl::StrJoin(options.data, ","));
  if (options.data.empty() && config->model().vocabulary() == 0) config->mutable_model()->set_vocabulary(kVocabulary);
  return config;
}

absl::StatusOr<Json> MeasureOurSteps(const FitData& data, FitSteps* steps, absl::Duration duration) {
  const absl::Duration begin = MonotonicNow();
  absl::Duration waited;
  double tokens = 0, distinct = 0;
  int64_t count = 0;
  BatchLoop batches(data.config(), &data.store());
  while (count == 0 || MonotonicNow() - begin < duration) {
    const absl::Duration asked = MonotonicNow();
    const auto batch = batches.Next();
    waited += MonotonicNow() - asked;
    if (!batch.ok()) return batch.status();
    if (const auto loss = steps->Step(**batch); !loss.ok()) return loss.status();
    tokens += static_cast<double>((*batch)->steps);
    distinct += static_cast<double>((*batch)->distinct_steps);
    ++count;
  }
  const double seconds = absl::ToDoubleSeconds(MonotonicNow() - begin), wait = absl::ToDoubleSeconds(waited);
  return Json{{kTokenRate, tokens / seconds},        {"seconds_per_step", seconds / static_cast<double>(count)},
              {"data_wait_seconds", wait},           {"data_wait_share", wait / seconds},
              {"distinct_share", distinct / tokens}, {"out_of_memory", steps->out_of_memory()}};
}

absl::StatusOr<Json> MeasureBareSteps(BareFit* bare, absl::Duration duration) {
  const absl::Duration begin = MonotonicNow();
  double tokens = 0, padded = 0;
  size_t count = 0;
  while (count == 0 || MonotonicNow() - begin < duration) {
    const size_t index = count++ % bare->batches();
    if (const auto loss = bare->Step(index); !loss.ok()) return loss.status();
    tokens += static_cast<double>(bare->tokens(index));
    padded += bare->padded_share(index);
  }
  const double seconds = absl::ToDoubleSeconds(MonotonicNow() - begin);
  return Json{{absl::StrCat("limit_", kTokenRate), tokens / seconds},
              {"limit_seconds_per_step", seconds / static_cast<double>(count)},
              {"limit_padded_share", padded / static_cast<double>(count)}};
}

// Gives `bare` the batches that ours trains on, each once.
absl::Status AddBatches(const FitData& data, BareFit* bare) {
  BatchLoop batches(data.config(), &data.store());
  for (;;) {
    const auto batch = batches.Next();
    if (!batch.ok()) return batch.status();
    if ((*batch)->number == 0 && bare->batches() > 0) return absl::OkStatus();
    if (absl::Status s = bare->Add(**batch); !s.ok()) return s;
  }
}

absl::Status RunFitBench(const FitBenchOptions& options, const ShutdownSignal& shutdown) {
  const auto plan = PlanFitBench(options);
  if (!plan.ok()) return plan.status();
  if (absl::Status s = CheckWritable(options.bench.json_path); !s.ok()) return s;
  const std::string what =
      options.data.empty() ? absl::StrCat(options.length, " keys") : absl::StrJoin(options.data, ", ");
  if (!options.learners.empty()) {
    return RunFitRankBench(options.bench, *plan, options.learners, options.length, what, shutdown);
  }
  const uint32_t threads = FitThreads(plan->train());
  if (absl::Status s = EnsureTorchThreads(threads); !s.ok()) return s;
  ProgressLine progress = StderrProgress();
  progress.Show("reading the data", -absl::Seconds(1));
  const auto data = FitData::Open(*plan, options.length, [&] { return shutdown.signalled(); });
  if (!data.ok()) return data.status();
  const v1::FitConfig& config = (*data)->config();
  const Vocabulary& vocabulary = (*data)->store().vocabulary();
  const auto steps = FitSteps::Make(config, vocabulary);
  if (!steps.ok()) return steps.status();
  const auto bare = BareFit::Make(config, vocabulary.classes(), threads);
  if (!bare.ok()) return bare.status();
  if (absl::Status s = AddBatches(**data, bare->get()); !s.ok()) return s;

  const v1::FitModelConfig& model = config.model();
  VerbRun run;
  run.heading = absl::StrCat("skein fit: our gradient step against plain LibTorch, ", vocabulary.classes(),
                             " classes, embedding ", model.embedding(), ", LSTM ", model.hidden(), " x ",
                             model.layers(), ", ", config.train().batch_size(), " sequences of ", what, ", ",
                             config.train().precision() == v1::PRECISION_BF16 ? "bf16" : "fp32", ", ",
                             (*bare)->device(), ", ", threads, " threads, tokens/s");
  run.config = DescribeConfig("fit", options.bench, config);
  run.config["device"] = (*bare)->device();
  run.config["threads"] = threads;
  run.config["data"] = options.data.empty() ? "made up" : what;
  if (options.data.empty()) run.config["length"] = options.length;
  run.config["classes"] = vocabulary.classes();
  run.config["parameters"] = (*steps)->parameter_count();
  run.config["batches"] = (*bare)->batches();
  run.contest.rate = kTokenRate;
  run.contest.ours_title = "FitTrainer";
  run.contest.limit_title = "LibTorch";
  run.contest.ours = [&](absl::Duration duration) { return MeasureOurSteps(**data, steps->get(), duration); };
  run.contest.limit = [&](absl::Duration duration) { return MeasureBareSteps(bare->get(), duration); };
  run.columns = {{"data_wait_share", "waits for data"}};
  // The first pass allocates what later ones use again.
  if (const auto s = run.contest.ours(absl::ZeroDuration()); !s.ok()) return s.status();
  if (const auto s = run.contest.limit(absl::ZeroDuration()); !s.ok()) return s.status();
  return MeasureAndReport(run, options.bench, shutdown, &progress);
}

}  // namespace

void AddBenchFit(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("fit", "The gradient steps of skein fit against the same in plain LibTorch");
  auto options = std::make_shared<FitBenchOptions>();
  AddMeasuringFlags(verb, &options->bench);
  const auto sizes = CLI::Range(1, 1048576);
  verb->add_option("--vocabulary", options->vocabulary, "Different keys; model.vocabulary, or 29 of made-up sequences")
      ->check(CLI::Range(1, 1000000));
  verb->add_option("--embedding", options->embedding, "Numbers for each key; model.embedding")->check(sizes);
  verb->add_option("--hidden", options->hidden, "Units of each LSTM layer; model.hidden")->check(sizes);
  verb->add_option("--layers", options->layers, "LSTM layers; model.layers")->check(sizes);
  CLI::Option* const length = verb->add_option("--length", options->length, "Keys of each made-up sequence")
                                  ->check(CLI::Range(1, 16384))
                                  ->capture_default_str();
  verb->add_option("--batch-size", options->batch_size, "Sequences of a gradient step; train.batch_size")->check(sizes);
  verb->add_option("--data", options->data, "A file, or a pattern of several, instead of made-up sequences")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->excludes(length);
  verb->add_option("--device", options->device, "auto, cpu or cuda:N; train.device");
  verb->add_option("--learners", options->learners,
                   "Numbers of ranks, e.g. 1,2,4: how well they train together, instead of against plain LibTorch")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1024));
  verb->footer(
      "Settings are those of `skein fit`, but for data.files: without --data sequences are made up, all of them "
      "different. With --learners the batch is that of the most ranks.\nExamples:\n"
      "  skein bench fit --config configs/deeplog_hdfs.yaml --json fit.json\n"
      "  skein bench fit --vocabulary 10000 --embedding 128 --hidden 256 --length 512 --device cuda:0\n"
      "  skein bench fit --config configs/deeplog_hdfs.yaml --data hdfs_train\n"
      "  skein bench fit --config configs/deeplog_hdfs.yaml --learners 1,2,4 --json ranks.json");
  verb->callback([options, action] {
    *action = [options](const ShutdownSignal& shutdown) { return RunFitBench(*options, shutdown); };
  });
  AddRankWorker(app, kFitRankVerb, MakeFitRankWork, action);
}

}  // namespace skein
