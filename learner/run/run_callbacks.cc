// SPDX-License-Identifier: Apache-2.0
#include "learner/run/run_callbacks.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/config/setting_changes.h"
#include "base/net/credential_flags.h"
#include "base/process/clock.h"
#include "base/process/message_text.h"
#include "base/process/subprocess.h"
#include "base/telemetry/log.h"

namespace skein {
namespace {

using nlohmann::json;

constexpr char kProgramPrefix[] = "exec:";  // Of a program that is the callback itself.
// Python and what the callback imports may take their time.
constexpr absl::Duration kStart = absl::Minutes(1);
constexpr int kImports = 5;  // So many times as long as another call.
// For what it does once its input has ended.
constexpr absl::Duration kFarewell = absl::Seconds(5);
// How long a call is waited for once the process was asked to end: the last checkpoint must still be written.
constexpr absl::Duration kLastCall = absl::Seconds(10);
// Iterations are slow with so large a share of all time.
constexpr double kSlowShare = 0.05;
constexpr uint64_t kIterationsToJudge = 20;
constexpr size_t kMostMetrics = 64, kMostNameBytes = 64;  // As what the coordinator keeps.

constexpr char kBegin[] = "on_run_begin", kIteration[] = "on_iteration", kCheckpoint[] = "on_checkpoint",
               kEnd[] = "on_run_end";

std::string Text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// {"ppo": {"lr": 1}} as {"ppo.lr": 1}.
void Flatten(const json& settings, const std::string& path, json* flat) {
  for (const auto& [key, value] : settings.items()) {
    const std::string name = path.empty() ? key : absl::StrCat(path, ".", key);
    if (value.is_object()) {
      Flatten(value, name, flat);
    } else {
      (*flat)[name] = value;
    }
  }
}

json Merged(const std::string& changes, const json& set) {
  json merged = changes.empty() ? json::object() : json::parse(changes, nullptr, false);
  if (!merged.is_object()) merged = json::object();
  merged.update(set);
  return merged;
}

}  // namespace

RunCallbacks::Options CallbackOptions(const v1::RunConfig& config, const std::string& folder) {
  RunCallbacks::Options options;
  options.name = config.callbacks().python();
  options.folder = folder;
  options.timeout = absl::Seconds(config.callbacks().timeout_seconds());
  if (absl::string_view program = options.name; absl::ConsumePrefix(&program, kProgramPrefix)) {
    options.command = absl::StrSplit(program, ' ', absl::SkipWhitespace());
    return options;
  }
  options.command = {PythonProgram(config.env().external().python()), "-m", "skein_env.callback_process", options.name};
  options.extra_env = {PythonPathVariable(), "PYTHONUNBUFFERED=1"};
  return options;
}

void RunCallbacks::Begin(const At& at) {
  if (begun_ || stops()) return;
  begun_ = true;
  changes_ = at.changes;
  told_ = at.checkpoint;
  auto started = JsonLineProcess::Start(options_.command,
                                        {.extra_env = options_.extra_env, .unset_env = CredentialFileVariables()});
  if (!started.ok()) {
    const bool program = absl::StartsWith(options_.name, kProgramPrefix);
    Fail("", absl::StrCat(started.status().message(),
                          program ? "" : " (env.external.python, or else SKEIN_PYTHON, names Python)"));
    return;
  }
  process_ = *std::move(started);
  json settings = SettingsByName(config_);
  settings.update(Merged(changes_, json::object()));
  const json answer = Ask(
      kBegin,
      {{"begin",
        {{"config", settings}, {"folder", options_.folder}, {"env_steps", at.env_steps}, {"iteration", at.iteration}}}},
      std::max(kStart, options_.timeout));
  has_.clear();
  if (const auto has = answer.find("has"); has != answer.end() && has->is_array()) {
    for (const json& method : *has) {
      if (method.is_string()) has_.insert(method.get<std::string>());
    }
  }
  if (!status_.ok()) return;
  spdlog::info("callback {} begins at {} env steps", options_.name, at.env_steps);
  if (has_.empty()) process_.reset();
}

std::map<std::string, double> RunCallbacks::Iteration(const json& line) {
  std::map<std::string, double> metrics;
  if (!Calls(kIteration)) return metrics;
  if (iterations_++ == 0) first_ = MonotonicNow();
  const json answer = Ask(kIteration, {{"iteration", line}}, options_.timeout);
  const auto found = answer.find("metrics");
  if (found == answer.end() || !found->is_object()) return metrics;
  for (const auto& [name, value] : found->items()) {
    if (metrics.size() == kMostMetrics || name.empty() || name.size() > kMostNameBytes) continue;
    metrics[name] = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
  }
  return metrics;
}

void RunCallbacks::Checkpoint(const std::string& path, const std::string& digest, uint64_t env_steps) {
  if (!Calls(kCheckpoint) || std::exchange(told_, path) == path) return;
  Ask(kCheckpoint, {{"checkpoint", {{"path", path}, {"digest", digest}, {"env_steps", env_steps}}}}, options_.timeout);
}

void RunCallbacks::End(const std::string& state) {
  if (Calls(kEnd)) Ask(kEnd, {{"run_end", {{"state", state}}}}, options_.timeout);
  if (process_ != nullptr) process_->Finish(kFarewell);
  process_.reset();
}

std::string RunCallbacks::TakeChanges(const std::string& changes) {
  changes_ = set_.empty() ? changes : Merged(changes, set_).dump();
  set_ = json::object();
  return changes_;
}

json RunCallbacks::Ask(const std::string& method, json request, absl::Duration timeout) {
  const absl::Duration begin = MonotonicNow();
  std::optional<absl::Duration> asked_to_end;
  const auto give_up = [&] {
    if (!options_.stopping || !options_.stopping()) return false;
    if (!asked_to_end) asked_to_end = MonotonicNow();
    return MonotonicNow() - *asked_to_end > kLastCall;
  };
  auto answer = process_->Ask(request, timeout, give_up);
  const absl::Duration took = MonotonicNow() - begin;
  spent_ += took;
  if (absl::IsCancelled(answer.status())) {
    spdlog::warn("callback {}: {} had not returned {} after the run was asked to end", options_.name, method,
                 absl::FormatDuration(kLastCall));
    process_.reset();
    return json::object();
  }
  if (!answer.ok()) {
    const bool late = absl::IsDeadlineExceeded(answer.status());
    Fail(method, absl::StrCat(answer.status().message(), late ? " (callbacks.timeout_seconds)" : "",
                              "; what it printed stands above"));
    return json::object();
  }
  TakeIn(method, *answer);
  if (status_.ok()) Watch(method, took);
  return *std::move(answer);
}

void RunCallbacks::TakeIn(const std::string& method, const json& answer) {
  if (const std::string error = Text(answer, "error"); !error.empty()) return Fail(method, error);
  if (const auto set = answer.find("set"); set != answer.end() && set->is_object()) {
    json all = set_;
    Flatten(*set, "", &all);
    const json merged = Merged(changes_, all);
    if (merged != Merged(changes_, set_)) {
      const auto changed = ReadChanges(config_, merged.dump());
      if (!changed.ok()) {
        const std::string place = Text(answer, "set_at");
        return Fail(method,
                    absl::StrCat(changed.status().message(), place.empty() ? "" : absl::StrCat(" (", place, ")")));
      }
      spdlog::info("callback {} changes settings: {}", options_.name, set->dump());
      set_ = std::move(all);
    }
  }
  if (const std::string why = Text(answer, "stop"); !why.empty() && !std::exchange(stops_, true)) {
    const std::string text = absl::StrCat("callback ", options_.name, " stops the run: ", OneLine(why));
    spdlog::info("{}", text);
    if (options_.warn) options_.warn(text);
  }
}

void RunCallbacks::Fail(const std::string& method, const std::string& why) {
  process_.reset();
  const std::string text =
      absl::StrCat("callback ", options_.name, method.empty() ? "" : ", ", method, ": ", OneLine(why));
  spdlog::error("{}", text);
  status_ = absl::FailedPreconditionError(text);
}

void RunCallbacks::Watch(const std::string& method, absl::Duration took) {
  if (slow_.count(method) > 0) return;
  if (method == kIteration) in_iterations_ += took;
  const double share = absl::FDivDuration(in_iterations_, std::max(MonotonicNow() - first_, absl::Nanoseconds(1)));
  std::string how;
  if (took > (method == kBegin ? kImports * options_.slow_call : options_.slow_call)) {
    how = absl::StrFormat("took %.1f s", absl::ToDoubleSeconds(took));
  } else if (method == kIteration && iterations_ >= kIterationsToJudge && share > kSlowShare) {
    how = absl::StrFormat("takes %.2g ms of each iteration, %.0f %% of the time",
                          absl::ToDoubleMilliseconds(in_iterations_) / static_cast<double>(iterations_), 100 * share);
  }
  if (how.empty()) return;
  slow_.insert(method);
  const std::string text = absl::StrCat("callback ", options_.name, ": ", method, " ", how, "; training waits for it");
  spdlog::warn("{}", text);
  if (options_.warn) options_.warn(text);
}

}  // namespace skein
