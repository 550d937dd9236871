// SPDX-License-Identifier: Apache-2.0
// skein tune, which is `skein bench tune`: measures which runners and environments suit this node.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "base/process/shutdown.h"
#include "base/process/subprocess.h"
#include "base/telemetry/format_count.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/scaling_training.h"
#include "bench/temporary_folder.h"
#include "bench/thread_environment.h"
#include "bench/tune.h"
#include "bench/verbs.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

constexpr char kCommand[] = "skein tune";

struct TuneOptions {
  TrainingSetup setup;
  std::string device;                // Empty = the configuration's.
  uint64_t steps_per_iteration = 0;  // 0 = the configuration's.
  bool batch = false;
  bool json = false;
};

// A change that also affects what is learned, so the user must decide on it.
struct BatchTrial {
  std::string setting;  // "ppo.minibatch_size=16384"
  TuneTrial trial;
};

class TuneRun {
 public:
  TuneRun(const TuneOptions& options, const v1::RunConfig& config, std::string folder, StopRequested stop)
      : options_(options), config_(config), folder_(std::move(folder)), stop_(std::move(stop)) {}

  // `with` says what differs from the configuration; empty = nothing.
  absl::StatusOr<TuneTrial> Measure(const TrainingSetup& setup, const ScalingPoint& point, const std::string& with) {
    const auto measured = MeasureTraining(setup, point, folder_, nullptr, stop_);
    if (!measured.ok()) return measured.status();
    const TuneTrial trial = MakeTrial(*measured);
    std::cerr << kCommand << ": " << point.name() << (with.empty() ? "" : " with ") << with << ": " << Rate(trial)
              << " env-steps/s" << std::endl;
    return trial;
  }

  absl::StatusOr<TuneSearch> Search() {
    const auto& rollout = config_.rollout();
    return SearchFastest(Cores(), rollout.envs_per_runner(), options_.setup.steps_per_iteration,
                         [this](const ScalingPoint& point) { return Measure(options_.setup, point, ""); });
  }

  // The fastest configuration with other minibatches, twice the steps of an iteration and, on a GPU, other arithmetic.
  absl::StatusOr<std::vector<BatchTrial>> TryBatches(const ScalingPoint& point) {
    const uint64_t steps = options_.setup.steps_per_iteration;
    const uint64_t minibatch = std::min<uint64_t>(MinibatchSize(config_), steps);
    std::vector<BatchTrial> trials;
    const auto measure = [&](const std::string& setting, uint64_t iteration_steps) {
      TrainingSetup setup = options_.setup;
      setup.overrides.push_back(setting);
      setup.steps_per_iteration = iteration_steps;
      auto trial = Measure(setup, point, setting);
      if (trial.ok()) trials.push_back({setting, *trial});
      return trial.status();
    };
    for (const uint64_t other : {minibatch / 4, minibatch * 4}) {
      if (other < 32 || other > steps) continue;
      if (absl::Status s = measure(absl::StrCat(AlgorithmName(config_), ".minibatch_size=", other), steps); !s.ok())
        return s;
    }
    if (absl::Status s = measure(absl::StrCat("rollout.steps_per_iteration=", 2 * steps), 2 * steps); !s.ok()) return s;
    if (!absl::StartsWith(options_.device, "cuda")) return trials;
    for (const char* setting : {"learner.tf32=true", "learner.precision=bf16", "learner.cuda_graph=true"}) {
      const absl::Status measured = measure(setting, steps);
      if (absl::IsCancelled(measured)) return measured;
      if (!measured.ok()) std::cerr << kCommand << ": left out: " << setting << ": " << measured.message() << std::endl;
    }
    return trials;
  }

  static std::string Rate(const TuneTrial& trial) {
    return FormatCount(static_cast<uint64_t>(std::llround(trial.env_steps_per_second)));
  }

 private:
  const TuneOptions& options_;
  const v1::RunConfig& config_;
  const std::string folder_;
  const StopRequested stop_;
};

// Of each setting that was tried, the value that was worth it most, as flags.
void PrintProfile(const std::string& device, const TuneSearch& search, const std::vector<BatchTrial>& batches) {
  std::map<std::string, const BatchTrial*> best;  // By name.
  for (const BatchTrial& batch : batches) {
    if (batch.trial.env_steps_per_second < kWorthIt * search.best.env_steps_per_second) continue;
    const BatchTrial*& chosen = best[batch.setting.substr(0, batch.setting.find('='))];
    if (chosen == nullptr || batch.trial.env_steps_per_second > chosen->trial.env_steps_per_second) chosen = &batch;
  }
  std::cout << "faster on " << device << ", each for itself: --device " << device;
  for (const auto& [name, batch] : best) std::cout << " --set " << batch->setting;
  std::cout << "\n";
}

void PrintResult(const TuneSearch& search, const std::vector<BatchTrial>& batches) {
  const ScalingPoint& best = search.best.point;
  std::cout << FormatTuneTable(search);
  for (const BatchTrial& batch : batches) {
    std::cout << absl::StrFormat("with %s: %s env-steps/s, %+.0f %%; it changes what is learned, too\n", batch.setting,
                                 TuneRun::Rate(batch.trial),
                                 100 * (batch.trial.env_steps_per_second / search.best.env_steps_per_second - 1));
  }
  std::cout << absl::StrFormat(
      "use: --runners %d --envs %d --envs-per-runner %d\n"
      "or in the configuration:\n  rollout:\n    num_envs: %d\n    envs_per_runner: %d\n",
      best.runners, best.environments(), best.envs_per_runner, best.environments(), best.envs_per_runner);
}

void PrintJson(const v1::RunConfig& config, const TuneSearch& search, const std::vector<BatchTrial>& batches) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const auto row = [](const TuneTrial& trial) -> nlohmann::ordered_json {
    return {{"runners", trial.point.runners},
            {"envs_per_runner", trial.point.envs_per_runner},
            {"env_steps_per_second", trial.env_steps_per_second},
            {"cpu", trial.cpu}};
  };
  for (const TuneTrial& trial : search.trials) rows.push_back(row(trial));
  for (const BatchTrial& batch : batches) {
    rows.push_back(row(batch.trial));
    rows.back()["setting"] = batch.setting;
  }
  nlohmann::ordered_json json;
  const std::vector<uint32_t> hidden(config.model().hidden().begin(), config.model().hidden().end());
  json["machine"] = DescribeMachine("");
  json["config"] = {{"env", config.env().id()}, {"hidden", hidden}, {"device", config.learner().device()}};
  json["summary"] = row(search.best);
  json["rows"] = std::move(rows);
  std::cout << json.dump(2) << std::endl;
}

absl::Status Tune(TuneOptions options, const StopRequested& stop) {
  if (!options.device.empty()) {
    options.setup.overrides.push_back("learner.device=" + nlohmann::json(options.device).dump());
  }
  const auto config = ReadSetupConfig(options.setup);
  if (!config.ok()) return config.status();
  options.setup.steps_per_iteration =
      options.steps_per_iteration > 0 ? options.steps_per_iteration : config->rollout().steps_per_iteration();
  const auto possible = TrainingOptions(options.setup, {1, 1}, "runs");
  if (!possible.ok()) return possible.status();
  const auto folder = TemporaryFolder::Make();
  if (!folder.ok()) return folder.status();

  TuneRun run(options, *config, folder->path(), stop);
  const auto search = run.Search();
  if (!search.ok()) return search.status();
  std::vector<BatchTrial> batches;
  if (options.batch || !options.device.empty()) {
    auto tried = run.TryBatches(search->best.point);
    if (!tried.ok()) return tried.status();
    batches = *std::move(tried);
  }
  if (options.json) {
    PrintJson(*config, *search, batches);
  } else {
    PrintResult(*search, batches);
    if (!options.device.empty()) PrintProfile(options.device, *search, batches);
  }
  return absl::OkStatus();
}

}  // namespace

void AddBenchTune(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("tune", "Measure how many runners and environments suit this node");
  auto options = std::make_shared<TuneOptions>();
  options->setup.iterations = 3;
  verb->add_option("--env", options->setup.env_id, "Environment; `skein envs` lists them");
  options->setup.recipe = "auto";
  verb->add_option("--recipe", options->setup.recipe, "Settings to start from, as of skein train")
      ->type_name("RECIPE")
      ->capture_default_str();
  verb->add_option("--config", options->setup.config_path, "Configuration, YAML");
  verb->add_option("--set", options->setup.overrides, "Any setting as a.b=value; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  verb->add_option("--iterations", options->setup.iterations, "Iterations to measure of each")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  verb->add_option("--steps-per-iteration", options->steps_per_iteration,
                   "Env steps of an iteration while measuring; fewer for slow environments")
      ->check(CLI::Range(1, 16777216));
  verb->add_flag("--batch", options->batch, "Measure other minibatches and longer iterations, too");
  verb->add_option(
          "--device", options->device,
          "Measure with the learner on auto, cpu or cuda:N, as with --batch; on a GPU tf32, bf16 and graphs, too")
      ->type_name("DEVICE");
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->footer("Example:\n  skein tune --env HalfCheetah-v5");
  verb->callback([options, action] {
    *action = [options](const ShutdownSignal& shutdown) {
      LetChildrenChooseThreads();
      options->setup.program_folder = ProgramFolder();
      return Tune(*options, [&shutdown] { return shutdown.signalled(); });
    };
  });
}

}  // namespace skein
