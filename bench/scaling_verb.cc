// SPDX-License-Identifier: Apache-2.0
// skein bench scaling: the parallel-efficiency study.
#include <iostream>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/command/arguments.h"
#include "base/process/file.h"
#include "base/process/subprocess.h"
#include "bench/scaling_report.h"
#include "bench/scaling_study.h"
#include "bench/thread_environment.h"
#include "bench/verbs.h"

namespace skein {
namespace {

constexpr char kCommand[] = "skein bench scaling";

struct Flags {
  ScalingOptions options;
  std::string runners, envs;  // "1,2,4"; empty = not given.
  bool no_limit = false;
};

void AddFlags(CLI::App* app, Flags* flags) {
  TrainingSetup& setup = flags->options.setup;
  app->add_option("--env", setup.env_id, "Environment; `skein envs` lists them");
  app->add_option("--recipe", setup.recipe, "Settings to start from, as of skein train")
      ->type_name("RECIPE")
      ->capture_default_str();
  app->add_option("--config", setup.config_path, "Configuration, YAML; overrides the recipe");
  app->add_option("--set", setup.overrides, "Any setting as a.b=value; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app->add_option("--runners", flags->runners, "Numbers of runners, e.g. 1,2,4,8; each with each of --envs");
  app->add_option("--envs", flags->envs, "Numbers of environments of a runner, e.g. 1,2,4,8");
  app->add_option("--actors", setup.actors, "Actor processes that the runners are split over, where there are enough")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app->add_option("--iterations", setup.iterations, "Iterations to measure")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app->add_option("--warmup", setup.warmup, "Iterations before them")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app->add_option("--seed", setup.seed, "Seed of each training")->transform(WholeNumber())->capture_default_str();
  CLI::Option* steps = app->add_option("--steps-per-iteration", setup.steps_per_iteration,
                                       "Env steps of an iteration, rounded to a multiple of the environments")
                           ->check(CLI::Range(1, 16777216))
                           ->capture_default_str();
  app->add_option("--steps-per-env", setup.steps_per_env,
                  "Env steps of each environment instead: iterations grow with their number")
      ->check(CLI::Range(1, 16777216))
      ->excludes(steps);
  app->add_option("--out", flags->options.out, "Folder for results.json and report.md")->required();
  app->add_flag("--resume", flags->options.resume, "Go on with the results that are in --out");
  app->add_flag("--no-limit", flags->no_limit, "Do not measure the physical limit");
  app->add_option("--json", flags->options.json_path,
                  "Write results.json here, too; without a file to standard output, in place of the table")
      ->expected(0, 1)
      ->default_str("-")
      ->type_name("FILE");
  app->footer(
      "Without --runners and --envs it measures 1x1 2x1 4x1 8x1 1x2 1x4 1x8 2x2 4x2 8x2.\n"
      "Example:\n  skein bench scaling --env HalfCheetah-v5 --runners 1,2,4,8 --envs 1,2,4,8 --out scaling");
}

absl::Status ChooseGrid(const Flags& flags, std::vector<ScalingPoint>* grid) {
  if (flags.runners.empty() && flags.envs.empty()) {
    *grid = StudyGrid();
    return absl::OkStatus();
  }
  const auto runners = ParseCounts(flags.runners.empty() ? "1" : flags.runners, "--runners");
  if (!runners.ok()) return runners.status();
  const auto envs = ParseCounts(flags.envs.empty() ? "1" : flags.envs, "--envs");
  if (!envs.ok()) return envs.status();
  *grid = CrossGrid(*runners, *envs);
  return absl::OkStatus();
}

absl::Status Run(Flags flags, const ShutdownSignal& shutdown) {
  if (absl::Status s = ChooseGrid(flags, &flags.options.grid); !s.ok()) return s;
  flags.options.limit = !flags.no_limit;
  const bool on_stdout = flags.options.json_path == "-";
  if (on_stdout) flags.options.json_path.clear();
  const auto say = [](const std::string& line) { std::cerr << kCommand << ": " << line << std::endl; };
  const auto analysis = RunScalingStudy(
      flags.options, [&shutdown] { return shutdown.signalled(); }, say);
  if (absl::IsCancelled(analysis.status())) {
    return absl::CancelledError("stopped; the same command with --resume goes on");
  }
  if (!analysis.ok()) return analysis.status();
  if (on_stdout) {
    const auto results = ReadFile(flags.options.out + "/results.json");
    if (!results.ok()) return results.status();
    std::cout << *results << std::flush;
    return absl::OkStatus();
  }
  std::cout << FormatScalingTable(*analysis) << "report: " << flags.options.out << "/report.md" << std::endl;
  return absl::OkStatus();
}

}  // namespace

void AddBenchScaling(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("scaling", "Training with more and more runners and environments");
  auto flags = std::make_shared<Flags>();
  AddFlags(verb, flags.get());
  verb->callback([flags, action] {
    *action = [flags](const ShutdownSignal& shutdown) {
      LetChildrenChooseThreads();
      flags->options.setup.program_folder = ProgramFolder();
      return Run(*flags, shutdown);
    };
  });
}

}  // namespace skein
