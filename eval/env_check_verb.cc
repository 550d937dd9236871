// SPDX-License-Identifier: Apache-2.0
// skein env check: whether an environment keeps the contract.
#include "eval/env_check_verb.h"

#include <unistd.h>

#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "base/command/arguments.h"
#include "base/config/config.h"
#include "base/net/credential_flags.h"
#include "base/process/exit_code.h"
#include "base/process/message_text.h"
#include "base/process/subprocess.h"
#include "env/env_config.h"
#include "env/external/external_envs.h"
#include "env/external/external_id.h"
#include "env/step_watchdog.h"
#include "eval/env_check.h"
#include "nlohmann/json.hpp"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"

namespace skein {
namespace {

constexpr char kName[] = "skein env check";
constexpr char kStepLimit[] = "rollout.step_timeout_seconds=10";  // Unless one is given.

struct EnvCheckFlags {
  std::string id, config;
  std::vector<std::string> overrides;
  int num_envs = 16;
  int64_t steps = 0;
  double seconds = 10;
  bool json = false;
  CredentialFiles credentials;  // For environments behind grpc://.
};

// Keeps the warnings in place of printing them, and nothing else. The last one says why something failed.
class KeptLog {
 public:
  KeptLog() {
    auto logger = std::make_shared<spdlog::logger>("kept", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
    logger->set_pattern("%v");
    logger->set_level(spdlog::level::warn);
    spdlog::set_default_logger(std::move(logger));
  }
  std::string TakeLastLine() {
    const std::vector<std::string> lines = absl::StrSplit(text_.str(), '\n', absl::SkipWhitespace());
    text_.str("");
    return lines.empty() ? "" : lines.back();
  }

 private:
  std::ostringstream text_;
};

absl::StatusOr<v1::RunConfig> ReadConfig(const EnvCheckFlags& flags) {
  // One failure is a verdict; waiting for others would only take time.
  std::vector<std::string> overrides = {absl::StrCat("env.id=", nlohmann::json(flags.id).dump(-1, ' ', true)),
                                        "env.external.restarts=1"};
  if (flags.config.empty()) overrides.push_back(kStepLimit);
  overrides.insert(overrides.end(), flags.overrides.begin(), flags.overrides.end());
  return ReadRunConfig(flags.config, overrides);
}

// What Python says of an environment's types.
CheckedPoint LookAtDtypes(const std::string& id, const ExternalOptions& options) {
  CheckedPoint point;
  const auto said = DescribeDtypes(id, options);
  const auto json = said.ok() ? nlohmann::json::parse(*said, nullptr, false) : nlohmann::json();
  if (!json.is_object()) {
    point.verdict = Verdict::kNotApplicable;
    point.found = OneLine(said.ok() ? *said : std::string(said.status().message()));
    return point;
  }
  const std::string verdict = json.value("verdict", "");
  point.verdict = verdict == "ok" ? Verdict::kOk : verdict == "fails" ? Verdict::kFails : Verdict::kNotApplicable;
  point.found = OneLine(json.value("found", ""));
  point.remedy = OneLine(json.value("remedy", ""));
  return point;
}

// `skein bench rollout` of one runner: coordinator and actor as real processes.
absl::StatusOr<double> MeasureActor(const EnvCheckFlags& flags, const std::function<bool()>& stopping) {
  constexpr absl::Duration kLongest = absl::Seconds(60), kEnding = absl::Seconds(10), kStopping = absl::Seconds(2);
  const CredentialFiles& credentials = flags.credentials;
  if (!credentials.token_file.empty() || !credentials.tls_cert.empty()) {
    return absl::NotFoundError("skein bench rollout has no credentials for it");
  }
  const std::string program = ProgramFolder() + "/skein-bench";
  if (access(program.c_str(), X_OK) != 0) return absl::NotFoundError("no skein-bench beside skein");
  const std::string envs = absl::StrCat(flags.num_envs);
  Subprocess::Options child;
  child.argv = {program,    "rollout", "--env",     flags.id, "--runners", "1",
                "--rounds", "1",       "--seconds", "0.5",    "--json",    "-"};
  if (!flags.config.empty()) child.argv.insert(child.argv.end(), {"--config", flags.config});
  for (const std::string& one : flags.overrides) child.argv.insert(child.argv.end(), {"--set", one});
  for (const std::string& one : {absl::StrCat("rollout.envs_per_runner=", envs),
                                 absl::StrCat("rollout.num_envs=", envs), std::string("sync.mode=on_policy")}) {
    child.argv.insert(child.argv.end(), {"--set", one});
  }
  child.capture_stdout = true;
  const auto started = Subprocess::Spawn(child);
  if (!started.ok()) return started.status();
  const auto lines = (*started)->ReadLines(kLongest, stopping);
  if (absl::IsCancelled(lines.status())) {
    (*started)->Signal(SIGTERM);  // It ends what it has started itself.
    (*started)->Wait(kStopping);
    return lines.status();
  }
  const auto code = lines.ok() ? (*started)->Wait(kEnding) : std::nullopt;
  if (absl::IsDeadlineExceeded(lines.status()) || (lines.ok() && !code)) {
    return absl::DeadlineExceededError(
        absl::StrCat("skein bench rollout took more than ", absl::FormatDuration(kLongest)));
  }
  if (!lines.ok()) return lines.status();
  if (*code != 0) {
    return absl::UnavailableError(
        absl::StrCat("skein bench rollout ended with code ", *code, "; what it said stands above"));
  }
  const auto json = nlohmann::json::parse(absl::StrJoin(*lines, "\n"), nullptr, false);
  try {
    return json.at("summary").at("env_steps_per_second").get<double>();
  } catch (const nlohmann::json::exception& error) {
    return absl::InternalError(absl::StrCat("skein bench rollout: ", error.what()));
  }
}

// Ends the process, by a thread of its own, where a check is still not over `kLongestStop` after a signal: a library of
// environments takes a step as long as it likes. Servers end with this process.
class StopLimit {
 public:
  explicit StopLimit(ShutdownSignal* signal) : signal_(signal) {
    signal_->OnSignal([this] {
      if (over_.WaitForNotificationWithTimeout(kLongestStop)) return;
      _exit(ReportAndExitCode(kName, absl::CancelledError("stopped on request, in the middle of a step")));
    });
  }
  ~StopLimit() {
    over_.Notify();
    signal_->OnSignal({});
  }

 private:
  static constexpr absl::Duration kLongestStop = absl::Seconds(5);
  ShutdownSignal* const signal_;
  absl::Notification over_;
};

// Plugins and Skein's own environments are called in this process: no server's limit ends a step that hangs.
bool InThisProcess(const std::string& env_id) {
  const auto id = ParseExternalId(env_id);
  return !id.ok() || id->kind == ExternalId::Kind::kPlugin;
}

// Ends the process: a step that does not return cannot be stopped.
void EndBecauseOfHang(const std::string& env_id, double limit_seconds, const EnvActivity::Place& place) {
  std::cout << std::flush;
  _exit(ReportAndExitCode(
      kName, absl::DataLossError(absl::StrCat(
                 env_id, ": environment ", place.env_index, ", step ", place.step, " of episode ", place.episode,
                 " has taken longer than ", limit_seconds,
                 " s (rollout.step_timeout_seconds); it cannot be stopped, so nothing more can be looked at"))));
}

int CheckAndPrint(const EnvCheckFlags& flags, ShutdownSignal* signal) {
  const StopLimit limit(signal);
  const auto stopping = [signal] { return signal->signalled(); };
  if (absl::Status status = UseCredentials(flags.credentials); !status.ok()) return ReportAndExitCode(kName, status);
  const auto config = ReadConfig(flags);
  if (!config.ok()) return ReportAndExitCode(kName, config.status());
  // Of this process for as long as it lives.
  static auto* const log = new KeptLog;
  EnvCheckOptions options;
  options.env_id = flags.id;
  options.num_envs = flags.num_envs;
  options.steps = flags.steps;
  options.seconds = absl::Seconds(flags.seconds);
  options.take_log = [] { return log->TakeLastLine(); };
  options.stopping = stopping;
  EnvOptions env = MakeEnvOptions(*config);
  env.external.given_up = stopping;
  EnvActivity activity;
  options.make = [&config, &flags, &env, &activity](int size, uint64_t seed) {
    auto made = VectorEnv::Make({.env_id = flags.id,
                                 .size = size,
                                 .seed = seed,
                                 .max_episode_steps = static_cast<int>(config->env().max_episode_steps()),
                                 .env = env});
    if (made.ok()) (*made)->SetActivity(&activity);
    return made;
  };
  const double step_limit = InThisProcess(flags.id) ? config->rollout().step_timeout_seconds() : 0;
  const StepWatchdog watchdog(
      {&activity}, absl::Seconds(step_limit),
      [&flags, step_limit](const EnvActivity::Place& place) { EndBecauseOfHang(flags.id, step_limit, place); });
  if (const auto id = ParseExternalId(flags.id); id.ok() && id->kind == ExternalId::Kind::kPython) {
    options.look_at_dtypes = [&flags, &env] { return LookAtDtypes(flags.id, env.external); };
  }
  options.measure_actor = [&flags, &stopping] { return MeasureActor(flags, stopping); };
  bool begun = false;
  options.on_point = [&flags, &begun](const CheckedPoint& point) {
    if (flags.json) return;
    if (!std::exchange(begun, true)) std::cout << Escaped(flags.id) << '\n';
    std::cout << FormatCheckedPoint(point) << std::flush;
  };
  const auto check = CheckEnv(options);
  if (!check.ok()) return ReportAndExitCode(kName, check.status());
  std::cout << (flags.json ? EnvCheckJson(*check) + "\n" : FormatVerdict(*check)) << std::flush;
  return FinishOutput(kName, check->ok() ? kExitOk : kExitData);
}

}  // namespace

void AddEnvCheck(CLI::App* app, ShutdownSignal* signal, std::function<int()>* action) {
  CLI::App* const env = app->add_subcommand("env", "Check an environment, or serve it to actors on other machines");
  env->require_subcommand(1);
  CLI::App* const verb = env->add_subcommand("check", "Check point by point whether an environment keeps the contract");
  const auto flags = std::make_shared<EnvCheckFlags>();
  verb->add_option("id", flags->id, "Environment, as --env of skein train: a name, python:, exec:, grpc:// or plugin:")
      ->type_name("ENV")
      ->required();
  verb->add_option("--config", flags->config, "Configuration, YAML, for its settings of the environment");
  verb->add_option("--set", flags->overrides, "Setting, env.a.b=value; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  verb->add_option("--num-envs", flags->num_envs, "Environments of the group whose speed is measured")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  verb->add_option("--steps", flags->steps, "Steps to look at; 0 = a few more than its limit, 200 at least")
      ->check(CLI::Range(0, 100000000))
      ->capture_default_str();
  verb->add_option("--seconds", flags->seconds, "Seconds that looking at these may take; there are four passes")
      ->check(NumberWithin(0.1, 86400))
      ->capture_default_str();
  AddCredentialFlags(verb, &flags->credentials);
  verb->add_flag("--json", flags->json, "Print one JSON object");
  env->footer("Example:\n  skein env check python:my_env:make");
  verb->footer("Ends with code 65 where a point fails.\nExample:\n  skein env check python:my_env:make --num-envs 32");
  verb->callback([=] { *action = [=] { return CheckAndPrint(*flags, signal); }; });
}

}  // namespace skein
