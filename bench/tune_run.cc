// SPDX-License-Identifier: Apache-2.0
#include "bench/tune_run.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/config/algorithm_rules.h"
#include "base/process/clock.h"
#include "base/process/cores.h"
#include "base/telemetry/format_count.h"
#include "bench/options.h"
#include "bench/tune_space.h"

namespace skein {
namespace {

constexpr uint64_t kEndless = 1000000000000;  // Env steps: the run is stopped after its iterations.
constexpr uint64_t kLeastMinibatch = 32;

}  // namespace

TuneRun::TuneRun(const TuneOptions& options, const v1::RunConfig& config, std::string folder, StopRequested stop,
                 Say say)
    : options_(options),
      config_(config),
      folder_(std::move(folder)),
      stop_(std::move(stop)),
      say_(std::move(say)),
      gpus_(GpuMonitor::Open(MonotonicNow()).value_or(nullptr)) {}

LaunchOptions TuneRun::Options(const TuneSettings& settings, const std::vector<std::string>& with) const {
  const TrainingSetup& setup = options_.setup;
  LaunchOptions options;
  options.recipe = setup.recipe;
  options.config_path = setup.config_path;
  options.env_id = setup.env_id;
  options.seed = setup.seed;
  options.name = "run";
  options.runs_dir = folder_ + "/trial";
  options.resume = "never";
  options.session.no_eval = true;
  options.overrides = setup.overrides;
  if (!SearchesDirections(config_)) {
    const uint64_t steps = setup.steps_per_iteration;
    options.overrides.push_back(absl::StrCat("rollout.steps_per_iteration=", steps));
    if (HasAlgorithmSetting(config_, "minibatch_size")) {
      options.overrides.push_back(
          absl::StrCat(AlgorithmName(config_), ".minibatch_size=", std::min<uint64_t>(MinibatchSize(config_), steps)));
    }
  }
  for (const auto& [name, value] : settings) {
    if (name == kRunnersFlag) options.runners = absl::StrCat(value);
  }
  for (const std::string& one : AsOverrides(settings)) options.overrides.push_back(one);
  options.overrides.push_back(absl::StrCat("total_steps=", kEndless));
  options.overrides.push_back(absl::StrCat("checkpoint.interval_steps=", kEndless));
  options.overrides.insert(options.overrides.end(), with.begin(), with.end());
  return options;
}

absl::Status TuneRun::Check(const TuneSettings& settings) const {
  return PlanLaunch(Options(settings, {}), Cores()).status();
}

absl::StatusOr<TuneTrial> TuneRun::Measure(const TuneSettings& settings, const std::vector<std::string>& with) {
  const LaunchOptions options = Options(settings, with);
  const std::string what = absl::StrCat(AsFlags(settings), with.empty() ? "" : " with ", absl::StrJoin(with, " "));
  if (const auto plan = PlanLaunch(options, Cores()); !plan.ok()) return plan.status();
  const auto measured = MeasureRun(options_.setup, options, what, gpus_.get(), stop_);
  if (!measured.ok()) {
    if (!absl::IsCancelled(measured.status())) say_(absl::StrCat(what, ": failed: ", measured.status().message()));
    return measured.status();
  }
  TuneTrial trial;
  trial.settings = settings;
  trial.env_steps_per_second = static_cast<double>(measured->times.env_steps) / measured->times.total_seconds();
  trial.seconds = measured->times.total_seconds();
  trial.cpu = SummarizeCpu(measured->usage).average;
  if (const auto gpu = SummarizeGpu(measured->usage)) trial.gpu = gpu->average;
  say_(absl::StrCat(what, ": ", FormatRate(trial), " env-steps/s"));
  return trial;
}

absl::StatusOr<std::vector<BatchTrial>> TuneRun::TryBatches(const TuneSettings& best) {
  std::vector<BatchTrial> trials;
  if (SearchesDirections(config_)) return trials;
  const uint64_t steps = options_.setup.steps_per_iteration;
  const uint64_t minibatch = std::min<uint64_t>(MinibatchSize(config_), steps);
  std::vector<std::pair<std::string, bool>> settings;  // And whether it changes what is learned.
  for (const uint64_t micro : {minibatch / 2, minibatch / 4}) {
    if (micro >= kLeastMinibatch) settings.emplace_back(absl::StrCat("learner.micro_batch_size=", micro), false);
  }
  if (HasAlgorithmSetting(config_, "minibatch_size")) {
    for (const uint64_t other : {minibatch / 4, minibatch * 4}) {
      if (other < kLeastMinibatch || other > steps) continue;
      settings.emplace_back(absl::StrCat(AlgorithmName(config_), ".minibatch_size=", other), true);
    }
  }
  settings.emplace_back(absl::StrCat("rollout.steps_per_iteration=", 2 * steps), true);
  if (absl::StartsWith(options_.device, "cuda")) {
    for (const char* setting : {"learner.tf32=true", "learner.precision=bf16", "learner.cuda_graph=true"}) {
      settings.emplace_back(setting, true);
    }
  }
  for (const auto& [setting, learned] : settings) {
    auto trial = Measure(best, {setting});
    if (absl::IsCancelled(trial.status())) return trial.status();
    if (trial.ok()) trials.push_back({setting, learned, *std::move(trial)});
  }
  return trials;
}

std::vector<std::string> WorthIt(const TuneTrial& best, const std::vector<BatchTrial>& batches) {
  std::map<std::string, const BatchTrial*> fastest;  // By name.
  for (const BatchTrial& batch : batches) {
    if (batch.trial.env_steps_per_second < kWorthIt * best.env_steps_per_second) continue;
    const BatchTrial*& chosen = fastest[batch.setting.substr(0, batch.setting.find('='))];
    if (chosen == nullptr || batch.trial.env_steps_per_second > chosen->trial.env_steps_per_second) chosen = &batch;
  }
  std::vector<std::string> settings;
  for (const auto& [name, batch] : fastest) settings.push_back(batch->setting);
  return settings;
}

std::string FormatRate(const TuneTrial& trial) {
  return FormatCount(static_cast<uint64_t>(std::llround(trial.env_steps_per_second)));
}

}  // namespace skein
