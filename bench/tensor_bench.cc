// SPDX-License-Identifier: Apache-2.0
// skein bench tensor: environments as tensors against VectorEnv; or, with --train or --algorithm, training on them
// against stepping them.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/command/arguments.h"
#include "base/config/algorithm_rules.h"
#include "base/config/direction_rules.h"
#include "base/number/philox.h"
#include "base/process/clock.h"
#include "base/telemetry/gpu_monitor.h"
#include "bench/measure_rate.h"
#include "bench/tensor_env_loop.h"
#include "bench/thread_environment.h"
#include "bench/verb.h"
#include "bench/verbs.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "env/vector_env.h"
#include "learner/run/trainer.h"

namespace skein {
namespace {

constexpr char kRate[] = "env_steps_per_second";
constexpr char kLimit[] = "limit_env_steps_per_second";
constexpr int64_t kSteps = 32;  // Of each world in an iteration.
constexpr int64_t kActionRows = 64;

struct TensorBenchOptions : BenchOptions {
  int64_t worlds = 1024;
  std::optional<int64_t> steps;  // Of each world in an iteration; not given: kSteps.
  std::string algorithm;
  std::optional<int64_t> dirs;
  std::string device;
  bool train = false;
};

// Whole iterations of sync.mode on_device, without the processes around them.
class Training {
 public:
  static absl::StatusOr<std::unique_ptr<Training>> Make(const v1::RunConfig& config, const EnvSpec& spec) {
    auto trainer = Trainer::Make(config, spec);
    if (!trainer.ok()) return trainer.status();
    const uint32_t worlds = config.rollout().num_envs();
    if (absl::Status s = (*trainer)->BeginOnDevice(0, worlds, {}); !s.ok()) return s;
    std::unique_ptr<Training> training(new Training(*std::move(trainer), DirectionSettingsAt(config.directions(), 0)));
    // The first ones allocate what later ones use again.
    if (const auto s = training->Measure(absl::ZeroDuration()); !s.ok()) return s.status();
    return training;
  }

  absl::StatusOr<Json> Measure(absl::Duration duration) {
    double steps = 0, samples = 0, iterations = 0, utilization = 0, readings = 0;
    absl::Duration collecting, updating;
    const absl::Duration begin = MonotonicNow();
    do {
      const absl::Duration from = MonotonicNow();
      const auto collected = trainer_->CollectOnDevice(iteration_, directions_);
      if (!collected.ok()) return collected.status();
      const absl::Duration between = MonotonicNow();
      const auto stats = trainer_->UpdateOnDevice(0, iteration_++, 0, 0);
      if (!stats.ok()) return stats.status();
      collecting += between - from;
      updating += MonotonicNow() - between;
      steps += static_cast<double>(collected->env_steps);
      samples += static_cast<double>(collected->samples);
      ++iterations;
      if (gpus_ == nullptr) continue;
      std::optional<double> busiest;  // Of several GPUs one is trained on.
      for (const GpuSample& gpu : gpus_->Sample(MonotonicNow())) busiest = std::max(busiest, gpu.utilization_ratio);
      if (!busiest) continue;
      utilization += *busiest;
      ++readings;
    } while (MonotonicNow() - begin < duration);
    const double seconds = absl::ToDoubleSeconds(MonotonicNow() - begin);
    Json row = {{kRate, steps / seconds},
                {"agent_steps_per_second", samples / seconds},
                {"seconds_per_iteration", seconds / iterations},
                {"collecting_share", absl::ToDoubleSeconds(collecting) / seconds},
                {"update_share", absl::ToDoubleSeconds(updating) / seconds}};
    if (readings > 0) row["gpu_utilization"] = utilization / readings;
    return row;
  }

 private:
  Training(std::unique_ptr<Trainer> trainer, const DirectionSettings& directions)
      : trainer_(std::move(trainer)),
        directions_(directions),
        gpus_(GpuMonitor::Open(MonotonicNow()).value_or(nullptr)) {}

  const std::unique_ptr<Trainer> trainer_;
  const DirectionSettings directions_;
  const std::unique_ptr<GpuMonitor> gpus_;  // Of the whole node; null: none.
  uint64_t iteration_ = 0;
};

// VectorEnv on some threads, as a limit or, where it is the slower one, what there was before.
absl::StatusOr<std::vector<Job>> NativeJobs(const v1::RunConfig& config) {
  std::vector<Job> jobs;
  for (uint32_t thread = 0; thread < config.learner().torch_threads(); ++thread) {
    VectorEnv::Options options;
    options.env_id = config.env().id();
    options.size = static_cast<int>(config.rollout().envs_per_runner());
    options.seed = config.seed();
    options.max_episode_steps = static_cast<int>(config.env().max_episode_steps());
    options.env = MakeEnvOptions(config.env());
    auto made = VectorEnv::Make(options);
    if (!made.ok()) return made.status();
    const std::shared_ptr<VectorEnv> envs = *std::move(made);
    const EnvSpec& spec = envs->spec();
    const int64_t width = int64_t{options.size} * spec.num_agents * (spec.discrete ? 1 : spec.action_size);
    auto actions = std::make_shared<std::vector<float>>(kActionRows * width);
    RandomStream random(options.seed, RandomPurpose::kAction, thread, 0);
    for (float& action : *actions) {
      action = spec.discrete ? static_cast<float>(random.Below(static_cast<uint32_t>(spec.action_size)))
                             : static_cast<float>(random.Uniform(-1, 1));
    }
    envs->ResetAll(uint64_t{thread} * options.size);
    jobs.push_back([envs, actions, width, row = int64_t{0}]() mutable -> int64_t {
      envs->Step(actions->data() + row * width);
      row = (row + 1) % kActionRows;
      return envs->size();
    });
  }
  return jobs;
}

absl::StatusOr<Json> MeasureSteps(const std::string& prefix, TensorEnvLoop* loop, absl::Duration duration) {
  const auto rates = loop->Measure(duration);
  if (!rates.ok()) return rates.status();
  return Json{{prefix + kRate, rates->env_steps_per_second},
              {prefix + "agent_steps_per_second", rates->agent_steps_per_second}};
}

std::string FirstTensorEnv() {
  const std::vector<EnvInfo> envs = ListEnvs();
  return absl::c_find_if(envs, [](const EnvInfo& env) { return env.tensor_form; })->id;
}

// What the flags say as settings, which --set comes after.
absl::StatusOr<std::vector<std::string>> FlagSettings(const TensorBenchOptions& options, bool search) {
  std::vector<std::string> settings = {"sync.mode=on_device"};
  if (!options.device.empty()) {
    settings.push_back(absl::StrCat("learner.device=", nlohmann::json(options.device).dump(-1, ' ', true)));
  }
  if (search && options.steps) {
    return absl::InvalidArgumentError(
        "--steps cannot be given with a search, whose iterations are whole episodes; try --set "
        "directions.episode_length");
  }
  const int64_t steps = options.steps.value_or(kSteps);
  if (search) {
    settings.push_back(absl::StrCat("directions.num_envs=", options.worlds));
    if (options.dirs) settings.push_back(absl::StrCat("directions.num_dirs=", *options.dirs));
    return settings;
  }
  if (options.dirs) return absl::InvalidArgumentError("--dirs wants --algorithm ars or es");
  settings.push_back(absl::StrCat("rollout.num_envs=", options.worlds));
  settings.push_back(absl::StrCat("rollout.steps_per_iteration=", options.worlds * steps));
  const auto minibatch =
      AlgorithmOverrides(options, {{"minibatch_size", std::min<int64_t>(4096, options.worlds * steps)}});
  if (!minibatch.ok()) return minibatch.status();
  settings.insert(settings.end(), minibatch->begin(), minibatch->end());
  if (options.worlds % 16 != 0) settings.push_back("rollout.envs_per_runner=1");
  return settings;
}

absl::Status RunTensorBench(const TensorBenchOptions& given, const ShutdownSignal& shutdown) {
  TensorBenchOptions options = given;
  if (options.env_id.empty() && options.config_path.empty()) options.env_id = FirstTensorEnv();
  if (!options.algorithm.empty()) {
    options.overrides.insert(options.overrides.begin(), absl::StrCat(options.algorithm, "={}"));
    options.train = true;
  }
  const auto search = SearchesDirections(options);
  if (!search.ok()) return search.status();
  options.train = options.train || *search;
  const auto first = FlagSettings(options, *search);
  if (!first.ok()) return first.status();
  options.overrides.insert(options.overrides.begin(), first->begin(), first->end());
  const auto plan = PlanBenchRun(options, "auto");
  if (!plan.ok()) return plan.status();
  const v1::RunConfig& config = plan->config;
  const int64_t directions = *search ? config.directions().num_dirs() : 0;
  const int64_t worlds = *search ? 2 * directions * config.directions().num_envs() : config.rollout().num_envs();
  if (absl::Status s = CheckWritable(options.json_path); !s.ok()) return s;
  if (absl::Status s = EnsureTorchThreads(config.learner().torch_threads()); !s.ok()) return s;
  const auto spec = FindEnvSpec(config.env().id(), MakeEnvOptions(config.env()));
  if (!spec.ok()) return spec.status();
  const auto loop = TensorEnvLoop::Make(config, worlds);
  if (!loop.ok()) return loop.status();

  VerbRun run;
  run.config = DescribeConfig("tensor", options, config);
  run.config["device"] = (*loop)->device();
  run.config["worlds"] = worlds;
  run.contest.rate = kRate;
  run.columns = {{"agent_steps_per_second", "agent-steps/s"}};
  const std::string what = absl::StrCat(config.env().id(), ": ", worlds, " worlds as tensors on ", (*loop)->device());
  ProgressLine progress = StderrProgress();
  if (options.train) {
    progress.Show("the first iteration", -absl::Seconds(1));
    const auto training = Training::Make(config, *spec);
    if (!training.ok()) return training.status();
    const std::string iteration =
        *search ? absl::StrCat(directions, " directions x 2 signs x ", config.directions().num_envs())
                : absl::StrCat(options.steps.value_or(kSteps), " steps an iteration");
    run.heading = absl::StrCat(what, ", ", iteration, ": training with ", AlgorithmName(config),
                               " against stepping alone with random actions, env-steps/s");
    run.contest.ours_title = "training";
    run.contest.limit_title = "stepping";
    run.contest.ours = [&](absl::Duration duration) { return (*training)->Measure(duration); };
    run.contest.limit = [&](absl::Duration duration) { return MeasureSteps("limit_", loop->get(), duration); };
    run.columns.push_back({"collecting_share", "collecting"});
    run.columns.push_back({"update_share", "update"});
    return MeasureAndReport(run, options, shutdown, &progress);
  }
  const auto native = NativeJobs(config);
  if (!native.ok()) return native.status();
  run.heading = absl::StrCat(what, " against VectorEnv of ", config.rollout().envs_per_runner(), ", ",
                             config.learner().torch_threads(), " threads, env-steps/s");
  run.contest.ours_title = "tensors";
  run.contest.limit_title = "VectorEnv";
  run.contest.ours = [&](absl::Duration duration) { return MeasureSteps("", loop->get(), duration); };
  run.contest.limit = [&](absl::Duration duration) -> absl::StatusOr<Json> {
    return Json{{kLimit, MeasureRate(*native, duration)}};
  };
  return MeasureAndReport(run, options, shutdown, &progress);
}

}  // namespace

void AddBenchTensor(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("tensor", "Environments as tensors: stepping them, or training on them");
  auto options = std::make_shared<TensorBenchOptions>();
  AddBenchFlags(verb, options.get());
  verb->add_option("--worlds", options->worlds, "How many at once; rollout.num_envs, or directions.num_envs")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  verb->add_option("--steps", options->steps, "Of each world in an iteration of training; not of a search")
      ->check(CLI::Range(1, 4096))
      ->default_str(absl::StrCat(kSteps));
  verb->add_option("--algorithm", options->algorithm, "Train with it, as with --train; default: ppo")
      ->check(OneOf(AlgorithmNames()));
  verb->add_option("--dirs", options->dirs, "Directions of a search, each with --worlds twice; directions.num_dirs")
      ->check(CLI::Range(1, 1 << 20));
  verb->add_option("--device", options->device, "auto, cpu or cuda:N; learner.device");
  verb->add_flag("--train", options->train, "Whole iterations of sync.mode on_device: stepping, inference and update");
  verb->footer(
      "Agent-steps are those of agents that are alive. learner.torch_threads threads, for either form.\n"
      "Examples:\n  skein bench tensor --env UavNavigate-v0 --worlds 4096 --device cpu\n"
      "  skein bench tensor --env UavNavigate-v0 --worlds 65536 --train --set ppo.minibatch_size=262144\n"
      "  skein bench tensor --env UavNavigate-v0 --algorithm ars --dirs 64 --worlds 1024");
  verb->callback([options, action] {
    *action = [options](const ShutdownSignal& shutdown) { return RunTensorBench(*options, shutdown); };
  });
}

}  // namespace skein
