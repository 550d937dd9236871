// SPDX-License-Identifier: Apache-2.0
// skein bench env: our vector environment against bare physics.
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/net/credential_flags.h"
#include "base/process/cores.h"
#include "bench/env_loops.h"
#include "bench/verb.h"
#include "bench/verbs.h"

namespace skein {
namespace {

struct EnvBenchOptions : BenchOptions {
  std::string threads;
  CredentialFiles credentials;  // For environments behind grpc://.
};

absl::Status RunEnvBench(const EnvBenchOptions& options, const ShutdownSignal& shutdown) {
  if (absl::Status status = UseCredentials(options.credentials); !status.ok()) return status;
  const auto threads = ParseRunners(options.threads, Cores());
  if (!threads.ok()) return threads.status();
  const auto config = ReadBenchConfig(options);
  if (!config.ok()) return config.status();
  if (absl::Status s = CheckWritable(options.json_path); !s.ok()) return s;
  const auto ours = VectorEnvLoops::Make(*config, *threads);
  if (!ours.ok()) return ours.status();
  ProgressLine progress = StderrProgress();
  progress.Show("playing the episodes of the limit", -absl::Seconds(1));
  const auto limit = EnvLimit::Make(*config, *threads);
  if (!limit.ok()) return limit.status();

  VerbRun run;
  const std::string& what = (*limit)->what();
  run.heading = absl::StrCat(config->env().id(), ": VectorEnv of ", config->rollout().envs_per_runner(),
                             " against bare ", what, ", ", *threads, " threads, env-steps/s");
  run.config = DescribeConfig("env", options, *config);
  run.config["threads"] = *threads;
  run.config["limit"] = what;
  run.contest.rate = "env_steps_per_second";
  run.contest.ours_title = "VectorEnv";
  run.contest.limit_title = "bare " + what;
  run.contest.ours = [&](absl::Duration duration) -> absl::StatusOr<Json> {
    const StepRates rates = (*ours)->MeasureRates(duration);
    if (absl::Status s = (*ours)->failure(); !s.ok()) return s;
    return Json{{"env_steps_per_second", rates.env_steps_per_second},
                {"agent_steps_per_second", rates.agent_steps_per_second}};
  };
  run.contest.limit = [&](absl::Duration duration) -> absl::StatusOr<Json> {
    const StepRates rates = (*limit)->MeasureRates(duration);
    if (absl::Status s = (*limit)->failure(); !s.ok()) return s;
    return Json{{"limit_env_steps_per_second", rates.env_steps_per_second},
                {"limit_agent_steps_per_second", rates.agent_steps_per_second}};
  };
  run.columns = {{"agent_steps_per_second", "agent-steps/s"}};
  return MeasureAndReport(run, options, shutdown, &progress);
}

}  // namespace

void AddBenchEnv(CLI::App* app, BenchAction* action) {
  CLI::App* verb = app->add_subcommand("env", "Our vector environment against bare mj_step");
  auto options = std::make_shared<EnvBenchOptions>();
  AddBenchFlags(verb, options.get());
  AddParallelFlag(verb, "--threads", "Threads, or auto = one for each core", &options->threads);
  AddCredentialFlags(verb, &options->credentials);
  verb->footer(
      "Agent-steps are those of agents that are alive.\n"
      "Example:\n  skein bench env --env HalfCheetah-v5 --threads 2 --json env.json");
  verb->callback([options, action] {
    *action = [options](const ShutdownSignal& shutdown) { return RunEnvBench(*options, shutdown); };
  });
}

}  // namespace skein
