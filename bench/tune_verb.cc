// SPDX-License-Identifier: Apache-2.0
// skein tune, which is `skein bench tune`: measures which sizes suit this machine, and can write them down.
#include <filesystem>
#include <iostream>
#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/command/arguments.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "base/process/cores.h"
#include "base/process/file.h"
#include "base/process/shutdown.h"
#include "base/process/subprocess.h"
#include "bench/device_speed.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/temporary_folder.h"
#include "bench/thread_environment.h"
#include "bench/tune_run.h"
#include "bench/tune_space.h"
#include "bench/verbs.h"
#include "launch/recipe.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

constexpr char kCommand[] = "skein tune";
constexpr absl::Duration kDeviceTime = absl::Milliseconds(300);  // Of each measurement of the device.

// Of each trial: iterations of a small search take milliseconds, which tell nothing.
constexpr absl::Duration kLeastTime = absl::Seconds(1);

struct Flags {
  TuneOptions tune;
  std::string algorithm;
  std::string write_path;  // Empty = none.
  bool force = false;
  bool json = false;
};

struct Outcome {
  Json machine;
  std::vector<std::string> learned;  // Settings among those tried that also change what is learned.
  TuneSearch search;
  std::vector<BatchTrial> batches;
  std::vector<std::string> also;  // Of the batches, those that are worth it together.
  TuneTrial best;                 // With them.
};

std::string DescribeSpeed(const Json& machine) {
  std::string text = absl::StrFormat("%s, %d cores, %.1f GiB", machine.value("cpu", "?"), machine.value("cores", 0),
                                     machine.value("memory_bytes", 0.0) / 0x1p30);
  for (const Json& gpu : machine["gpus"]) {
    absl::StrAppendFormat(&text, "; %s, %.1f GiB", gpu.value("name", "a GPU"), gpu.value("memory_bytes", 0.0) / 0x1p30);
  }
  const Json& speed = machine["device_speed"];
  absl::StrAppendFormat(&text, "; %s: products of float32 %.3g flops, copies %.3g bytes/s", speed.value("device", "?"),
                        speed.value("fp32_flops", 0.0), speed.value("copy_bytes_per_second", 0.0));
  return text;
}

// The names of the chosen settings that change what is learned, too.
std::vector<std::string> ChosenLearned(const Outcome& outcome) {
  std::vector<std::string> names;
  for (size_t i = 0; i < outcome.best.settings.size(); ++i) {
    const auto& [name, value] = outcome.best.settings[i];
    const bool changed = outcome.search.trials[0].settings[i].second != value;
    if (changed && absl::c_linear_search(outcome.learned, name)) names.push_back(name);
  }
  for (const BatchTrial& batch : outcome.batches) {
    if (batch.learned && absl::c_linear_search(outcome.also, batch.setting)) {
      names.push_back(batch.setting.substr(0, batch.setting.find('=')));
    }
  }
  return names;
}

// All that was tried, a line each.
std::string DescribeTrials(const Outcome& outcome) {
  std::string text = FormatTuneTable(outcome.search);
  for (const BatchTrial& batch : outcome.batches) {
    absl::StrAppendFormat(&text, "with %s: %s env-steps/s, %+.0f %%%s\n", batch.setting, FormatRate(batch.trial),
                          100 * (batch.trial.env_steps_per_second / outcome.search.best.env_steps_per_second - 1),
                          batch.learned ? "; it changes what is learned, too" : "");
  }
  return text;
}

void PrintOutcome(const Outcome& outcome) {
  std::cout << DescribeSpeed(outcome.machine) << "\n" << DescribeTrials(outcome);
  std::string flags = AsFlags(outcome.best.settings);
  for (const std::string& setting : outcome.also) absl::StrAppend(&flags, " --set ", setting);
  std::cout << "use: " << flags << "\n";
  if (const auto names = ChosenLearned(outcome); !names.empty()) {
    std::cout << "of these change what is learned, too: " << absl::StrJoin(names, ", ") << "\n";
  }
}

void PrintJson(const v1::RunConfig& config, const Outcome& outcome) {
  const auto row = [](const TuneTrial& trial) {
    Json json = Json::object();
    for (const auto& [name, value] : trial.settings) json[name.substr(name.rfind('.') + 1)] = value;
    json["env_steps_per_second"] = trial.env_steps_per_second;
    json["seconds"] = trial.seconds;
    json["cpu"] = trial.cpu;
    if (trial.gpu) json["gpu"] = *trial.gpu;
    if (!trial.failure.empty()) json["failure"] = trial.failure;
    return json;
  };
  Json rows = Json::array();
  for (const TuneTrial& trial : outcome.search.trials) rows.push_back(row(trial));
  for (const BatchTrial& batch : outcome.batches) {
    rows.push_back(row(batch.trial));
    rows.back()["setting"] = batch.setting;
  }
  const std::vector<uint32_t> hidden(config.model().hidden().begin(), config.model().hidden().end());
  Json json = {{"machine", outcome.machine},
               {"config",
                {{"env", config.env().id()},
                 {"algorithm", AlgorithmName(config)},
                 {"hidden", hidden},
                 {"device", config.learner().device()}}},
               {"summary", row(outcome.best)},
               {"rows", std::move(rows)}};
  json["summary"]["settings"] = outcome.also;
  json["summary"]["changes_what_is_learned"] = ChosenLearned(outcome);
  std::cout << json.dump(2) << std::endl;
}

// FailedPrecondition, PermissionDenied: --write cannot be followed.
absl::Status CheckWrite(const Flags& flags) {
  if (flags.write_path.empty()) {
    return flags.force ? absl::InvalidArgumentError("--force wants --write FILE") : absl::OkStatus();
  }
  std::error_code ignored;
  if (!flags.force && std::filesystem::exists(flags.write_path, ignored)) {
    return absl::AlreadyExistsError(
        absl::StrCat("--write ", flags.write_path, ": is there already; --force writes over it"));
  }
  const absl::Status writable = CheckWritable(flags.write_path);
  if (writable.ok()) return writable;
  return absl::PermissionDeniedError(absl::StrReplaceAll(writable.message(), {{"--json ", "--write "}}));
}

absl::Status WriteProfile(const Flags& flags, const v1::RunConfig& config, const Outcome& outcome) {
  const TrainingSetup& setup = flags.tune.setup;
  std::vector<std::string> overrides = setup.overrides;
  if (!setup.env_id.empty()) overrides.insert(overrides.begin(), "env.id=" + nlohmann::json(setup.env_id).dump());
  const auto recipe = ChooseRecipe(setup.recipe, setup.config_path, overrides, /*learners=*/1, setup.command);
  if (!recipe.ok()) return recipe.status();
  v1::RunConfig user = recipe->settings;
  if (!setup.config_path.empty()) {
    const auto text = ReadFile(setup.config_path);
    if (!text.ok()) return text.status();
    if (absl::Status s = MergeYaml(*text, setup.config_path, &user); !s.ok()) return s;
  }
  std::vector<std::string> chosen = AsOverrides(outcome.best.settings);
  chosen.insert(chosen.end(), outcome.also.begin(), outcome.also.end());
  std::string command = absl::StrCat("skein train --config ", flags.write_path);
  for (const auto& [name, value] : outcome.best.settings) {
    if (name == kRunnersFlag) absl::StrAppend(&command, " --runners ", value);
  }
  std::vector<std::string> comment = {
      absl::StrCat("Measured by skein tune for ", config.env().id(), " and ", AlgorithmName(config), ": ",
                   FormatRate(outcome.best), " env-steps/s on"),
      DescribeSpeed(outcome.machine) + ".", absl::StrCat("Fastest: ", absl::StrJoin(chosen, ", "), "."), command};
  if (const auto names = ChosenLearned(outcome); !names.empty()) {
    comment.push_back("These change what is learned, too: " + absl::StrJoin(names, ", "));
  }
  comment.emplace_back("All that was tried:");
  for (const absl::string_view line : absl::StrSplit(DescribeTrials(outcome), '\n', absl::SkipEmpty())) {
    comment.push_back(absl::StrCat("  ", line));
  }
  overrides.insert(overrides.end(), chosen.begin(), chosen.end());
  const auto text = ProfileText(user, overrides, comment);
  if (!text.ok()) return text.status();
  if (absl::Status s = WriteFileAtomically(flags.write_path, *text); !s.ok()) return s;
  std::cerr << kCommand << ": wrote " << flags.write_path << std::endl;
  return absl::OkStatus();
}

// Measures all settings that are worth it one by one together, and keeps them if they are so together, too.
absl::Status TryTogether(TuneRun* run, Outcome* outcome) {
  const std::vector<std::string> also = WorthIt(outcome->search.best, outcome->batches);
  if (also.empty()) return absl::OkStatus();
  const auto trial = run->Measure(outcome->search.best.settings, also);
  if (absl::IsCancelled(trial.status())) return trial.status();
  if (!trial.ok() || trial->env_steps_per_second < kWorthIt * outcome->search.best.env_steps_per_second) {
    return absl::OkStatus();
  }
  outcome->also = also;
  outcome->best = *trial;
  return absl::OkStatus();
}

// Flags that a search over directions does not read.
absl::Status CheckUnread(const TuneOptions& options, const v1::RunConfig& config) {
  if (!SearchesDirections(config) || (!options.batch && options.steps_per_iteration == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      options.batch ? absl::StrCat("--batch cannot be given with ", AlgorithmName(config), ", which has no minibatches")
                    : absl::StrCat("--steps-per-iteration cannot be given with ", AlgorithmName(config),
                                   ", whose iterations are whole episodes; try --set directions.episode_length=",
                                   options.steps_per_iteration));
}

absl::Status Tune(Flags flags, const StopRequested& stop) {
  TuneOptions& options = flags.tune;
  std::vector<std::string> first;
  if (!flags.algorithm.empty()) first.push_back(flags.algorithm + "={}");
  if (!options.device.empty()) first.push_back("learner.device=" + nlohmann::json(options.device).dump());
  options.setup.overrides.insert(options.setup.overrides.begin(), first.begin(), first.end());
  if (absl::Status s = CheckWrite(flags); !s.ok()) return s;
  const auto config = ReadSetupConfig(options.setup);
  if (!config.ok()) return config.status();
  if (absl::Status s = CheckUnread(options, *config); !s.ok()) return s;
  options.setup.steps_per_iteration =
      options.steps_per_iteration > 0 ? options.steps_per_iteration : config->rollout().steps_per_iteration();
  const auto folder = TemporaryFolder::Make();
  if (!folder.ok()) return folder.status();
  const auto say = [](const std::string& line) { std::cerr << kCommand << ": " << line << std::endl; };
  TuneRun run(options, *config, folder->path(), stop, say);

  Outcome outcome;
  v1::RunConfig sized = *config;
  if (!SearchesDirections(sized)) {
    sized.mutable_rollout()->set_steps_per_iteration(static_cast<uint32_t>(options.setup.steps_per_iteration));
  }
  const auto space = MakeTuneSpace(sized, Cores());
  if (!space.ok()) return space.status();
  outcome.learned = space->learned;
  TunePoint start;
  for (const TuneKnob& knob : space->knobs) start.push_back(knob.start);
  if (absl::Status s = run.Check(space->settings(start)); !s.ok()) return s;
  outcome.machine = DescribeMachine("");
  outcome.machine["gpus"] = ListGpus();
  say("measuring the device");
  const auto speed = MeasureDevice(config->learner().device(), static_cast<int>(Cores()), kDeviceTime);
  if (!speed.ok()) return speed.status();
  outcome.machine["device_speed"] = *speed;

  auto search = SearchFastest(*space, [&run](const TuneSettings& settings) { return run.Measure(settings, {}); });
  if (!search.ok()) return search.status();
  outcome.search = *std::move(search);
  outcome.best = outcome.search.best;
  if (options.batch || !options.device.empty()) {
    auto tried = run.TryBatches(outcome.best.settings);
    if (!tried.ok()) return tried.status();
    outcome.batches = *std::move(tried);
    if (absl::Status s = TryTogether(&run, &outcome); !s.ok()) return s;
  }
  if (flags.json) {
    PrintJson(*config, outcome);
  } else {
    PrintOutcome(outcome);
  }
  return flags.write_path.empty() ? absl::OkStatus() : WriteProfile(flags, *config, outcome);
}

}  // namespace

void AddBenchTune(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("tune", "Measure which sizes suit this machine, and write them down if asked");
  auto flags = std::make_shared<Flags>();
  TuneOptions& options = flags->tune;
  options.setup.iterations = 3;
  options.setup.time = kLeastTime;
  verb->add_option("--env", options.setup.env_id, "Environment; `skein envs` lists them");
  options.setup.recipe = "auto";
  options.setup.command = kCommand;
  verb->add_option("--recipe", options.setup.recipe, "Settings to start from, as of skein train")
      ->type_name("RECIPE")
      ->capture_default_str();
  verb->add_option("--config", options.setup.config_path, "Configuration, YAML");
  verb->add_option("--algorithm", flags->algorithm, "What is trained with, where --config and --set do not say it")
      ->check(OneOf(AlgorithmNames()));
  verb->add_option("--set", options.setup.overrides, "Any setting as a.b=value; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  verb->add_option("--iterations", options.setup.iterations,
                   "Iterations to measure of each, at least, for a second or more")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  verb->add_option("--steps-per-iteration", options.steps_per_iteration,
                   "Env steps of an iteration while measuring; fewer for slow environments")
      ->check(CLI::Range(1, 16777216));
  verb->add_flag("--batch", options.batch,
                 "Measure smaller micro-batches, other minibatches and longer iterations, too");
  verb->add_option(
          "--device", options.device,
          "Measure with the learner on auto, cpu or cuda:N, as with --batch; on a GPU tf32, bf16 and graphs, too")
      ->type_name("DEVICE");
  verb->add_option("--write", flags->write_path, "Write a configuration with the fastest settings to this file")
      ->type_name("FILE");
  verb->add_flag("--force", flags->force, "Let --write replace a file");
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->footer(
      "By the algorithm and sync.mode it varies runners and environments; runners, directions and those of a work\n"
      "order; or, with sync.mode on_device, worlds and directions at once.\n"
      "Examples:\n  skein tune --env HalfCheetah-v5 --write mine.yaml\n"
      "  skein tune --env UavNavigate-v0 --algorithm ars --set sync.mode=on_device");
  verb->callback([flags, action] {
    *action = [flags](const ShutdownSignal& shutdown) {
      LetChildrenChooseThreads();
      flags->tune.setup.program_folder = ProgramFolder();
      return Tune(*flags, [&shutdown] { return shutdown.signalled(); });
    };
  });
}

}  // namespace skein
