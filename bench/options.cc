// SPDX-License-Identifier: Apache-2.0
#include "bench/options.h"

#include <unistd.h>

#include <filesystem>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/command/arguments.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "base/process/cores.h"
#include "base/process/file.h"
#include "base/process/message_text.h"
#include "env/env_config.h"
#include "env/registry.h"
#include "launch/recipe.h"
#include "nlohmann/json.hpp"

namespace skein {

void AddBenchFlags(CLI::App* verb, BenchOptions* options) {
  verb->add_option("--env", options->env_id, "Environment; `skein envs` lists them");
  AddMeasuringFlags(verb, options);
}

void AddMeasuringFlags(CLI::App* verb, BenchOptions* options) {
  verb->add_option("--config", options->config_path, "Configuration, YAML");
  verb->add_option("--set", options->overrides, "Any setting as a.b=value; may be repeated, comes last")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  verb->add_option("--seed", options->seed, "Key of all random numbers")->transform(WholeNumber());
  verb->add_option("--rounds", options->rounds, "Rounds, each of which measures both; medians are reported")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--seconds", options->seconds, "Seconds of each measurement, two a round")
      ->check(NumberWithin(0.01, 3600))
      ->capture_default_str();
  verb->add_option(
          "--json", options->json_path,
          "Write machine, config, summary and rows to this file; without a file to standard output, in place of "
          "the table")
      ->expected(0, 1)
      ->default_str("-")
      ->type_name("FILE");
}

void AddParallelFlag(CLI::App* verb, const std::string& flag, const std::string& help, std::string* value) {
  *value = "auto";
  const auto check = [](const std::string& text) -> std::string {
    const auto runners = ParseRunners(text, 1);
    return runners.ok() ? "" : absl::StrCat("got ", Quoted(text), ", want auto or a number from 1 to 4096");
  };
  verb->add_option(flag, *value, help)
      ->check(CLI::Validator(check, "", "count"))
      ->type_name("N|auto")
      ->capture_default_str();
}

absl::StatusOr<v1::RunConfig> ReadBenchConfig(const BenchOptions& options) {
  std::vector<std::string> overrides;
  if (!options.env_id.empty()) {
    overrides.push_back(absl::StrCat("env.id=", nlohmann::json(options.env_id).dump(-1, ' ', true)));
  }
  if (options.seed) overrides.push_back(absl::StrCat("seed=", *options.seed));
  overrides.insert(overrides.end(), options.overrides.begin(), options.overrides.end());
  auto config = ReadRunConfig(options.config_path, overrides);
  if (!config.ok()) return config.status();
  if (absl::Status s = MakeEnv(config->env().id(), MakeEnvOptions(config->env())).status(); !s.ok()) return s;
  return config;
}

absl::StatusOr<bool> SearchesDirections(const BenchOptions& options) {
  auto config = UserSettings(options.config_path, options.overrides);
  if (!config.ok()) return config.status();
  ApplyDefaults(&*config);
  return SearchesDirections(*config);
}

absl::StatusOr<std::vector<std::string>> AlgorithmOverrides(
    const BenchOptions& options, const std::vector<std::pair<std::string, int64_t>>& settings) {
  auto config = UserSettings(options.config_path, options.overrides);
  if (!config.ok()) return config.status();
  ApplyDefaults(&*config);
  std::vector<std::string> overrides;
  for (const auto& [name, value] : settings) {
    if (HasAlgorithmSetting(*config, name)) {
      overrides.push_back(absl::StrCat(AlgorithmName(*config), ".", name, "=", value));
    }
  }
  return overrides;
}

absl::StatusOr<LaunchPlan> PlanBenchRun(const BenchOptions& options, const std::string& runners) {
  LaunchOptions launch;
  launch.config_path = options.config_path;
  launch.env_id = options.env_id;
  launch.seed = options.seed;
  launch.overrides = options.overrides;
  launch.runners = runners;
  return PlanLaunch(launch, Cores());
}

absl::Status CheckWritable(const std::string& path) {
  if (path.empty() || path == "-") return absl::OkStatus();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::PermissionDeniedError(absl::StrCat("--json ", path, ": is a folder"));
  }
  const std::string probe = absl::StrCat(path, ".", getpid(), ".tmp");
  const absl::Status status = WriteFileSynced(probe, "");
  std::filesystem::remove(probe, ignored);
  if (status.ok()) return status;
  return absl::PermissionDeniedError(absl::StrCat("--json ", path, ": cannot be written: ", status.message()));
}

}  // namespace skein
