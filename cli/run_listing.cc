// SPDX-License-Identifier: Apache-2.0
#include "cli/run_listing.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "base/config/config_reflection.h"
#include "base/config/message_settings.h"
#include "base/config/nearest_name.h"
#include "base/process/file.h"
#include "base/process/message_text.h"
#include "base/process/system_error.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMaxFileBytes = 1 << 20;
constexpr char kReturn[] = "episode_return_mean";

// Whether a process holds the run's lock.
bool IsLocked(const std::string& path) {
  const int fd = open((path + "/lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return locked;
}

// Calls visit(line) for each line of the run's metrics that is an object; the last one may be cut off.
template <typename Visit>
void ForEachIteration(const std::string& path, const Visit& visit) {
  std::error_code error;
  if (!fs::is_regular_file(path + "/metrics.jsonl", error)) return;  // Opening a pipe would wait for ever.
  std::ifstream file(path + "/metrics.jsonl");
  std::string line;
  while (std::getline(file, line)) {
    const json iteration = json::parse(line, nullptr, false);
    if (iteration.is_object()) visit(iteration);
  }
}

std::optional<double> NumberAt(const json& object, const std::string& path) {
  const json* at = &object;
  for (const absl::string_view part : absl::StrSplit(path, '.')) {
    const auto found = at->is_object() ? at->find(std::string(part)) : at->end();
    if (!at->is_object() || found == at->end()) return std::nullopt;
    at = &*found;
  }
  return at->is_number() ? std::optional(at->get<double>()) : std::nullopt;
}

void CollectNames(const json& object, const std::string& before, std::set<std::string>* names) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) CollectNames(value, absl::StrCat(before, key, "."), names);
    if (value.is_number()) names->insert(before + key);
  }
}

uint64_t BytesOf(const std::string& path) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored) && !it->is_symlink(ignored)) bytes += it->file_size(ignored);
  }
  return bytes;
}

absl::Time ChangedAt(const std::string& path) {
  absl::Time changed = absl::UnixEpoch();
  for (const char* name : {"/config.yaml", "/metrics.jsonl"}) {
    struct stat info;
    if (stat((path + name).c_str(), &info) == 0) changed = std::max(changed, absl::TimeFromTimespec(info.st_mtim));
  }
  return changed;
}

// What x axes count.
const char* StepsOf(const RunListing& run) { return run.fit ? "sequences" : "env_steps"; }

void ReadFitMetrics(RunListing* run) {
  uint64_t epochs = 0, best_epoch = 0;
  ForEachIteration(run->path, [&](const json& line) {
    run->env_steps = static_cast<uint64_t>(NumberAt(line, "sequences").value_or(0));
    const auto loss = NumberAt(line, "held_out_loss");
    if (!loss) return;  // Not the end of an epoch.
    epochs = static_cast<uint64_t>(NumberAt(line, "epoch").value_or(0));
    run->total_steps =
        static_cast<uint64_t>(NumberAt(line, "epoch_sequences").value_or(0)) * run->fit->train().epochs();
    run->held_out_loss = loss;
    if (run->best_held_out_loss && *run->best_held_out_loss <= *loss) return;
    run->best_held_out_loss = loss;
    best_epoch = epochs;
  });
  const uint64_t patience = run->fit->train().patience();
  run->finished = epochs >= run->fit->train().epochs() || (patience > 0 && epochs >= best_epoch + patience);
}

void ReadMetrics(RunListing* run) {
  ForEachIteration(run->path, [run](const json& iteration) {
    run->env_steps = static_cast<uint64_t>(NumberAt(iteration, "env_steps").value_or(0));
    run->seconds = NumberAt(iteration, "seconds").value_or(run->seconds);
    const auto mean = NumberAt(iteration, kReturn);
    if (!mean) return;
    run->episode_return = mean;
    run->best_episode_return = std::max(run->best_episode_return.value_or(*mean), *mean);
  });
}

// "a.b" -> value, of all settings that are set.
void Flatten(const google::protobuf::Message& message, const std::string& path,
             std::map<std::string, std::string>* all) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const auto* const field : fields) {
    const std::string below = config_reflection::JoinPath(path, field->name());
    if (field->message_type() == nullptr) {
      (*all)[below] = config_reflection::ValueText(message, field);
    } else if (!field->is_repeated()) {
      Flatten(message.GetReflection()->GetMessage(message, field), below, all);
    } else {
      for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
        const auto& element = message.GetReflection()->GetRepeatedMessage(message, field, i);
        Flatten(element, absl::StrCat(below, "[", i, "]"), all);
      }
    }
  }
}

}  // namespace

std::string RunListing::algorithm() const { return fit ? "fit" : AlgorithmName(config); }
std::string RunListing::task() const { return fit ? "sequences" : config.env().id(); }

absl::StatusOr<std::vector<std::string>> RunNames(const std::string& runs_dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(runs_dir, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const bool begun =
        fs::exists(it->path() / "config.yaml", ignored) || fs::exists(it->path() / "metrics.jsonl", ignored);
    if (begun) names.push_back(it->path().filename());
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat(Quoted(runs_dir), ": no such folder of runs; give its --runs-dir"));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<RunListing> FindRun(const std::string& runs_dir, const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(name), " is no name of a run; folders of runs are given by --runs-dir"));
  }
  const auto names = RunNames(runs_dir);
  if (!names.ok()) return names.status();
  if (std::find(names->begin(), names->end(), name) == names->end()) {
    const std::string hint =
        names->empty() ? "there are none"
                       : absl::StrCat("the nearest is ", Quoted((*names)[FindNearestName(name, *names, '/').index]));
    return absl::NotFoundError(absl::StrCat("no run ", Quoted(name), " in ", Shown(runs_dir), "; ", hint));
  }
  RunListing run;
  run.name = name;
  run.path = runs_dir + "/" + name;
  run.running = IsLocked(run.path);
  run.bytes = BytesOf(run.path);
  return run;
}

absl::StatusOr<RunListing> ReadRun(const std::string& runs_dir, const std::string& name) {
  auto found = FindRun(runs_dir, name);
  if (!found.ok()) return found.status();
  RunListing& run = *found;
  const auto text = ReadFile(run.path + "/config.yaml", kMaxFileBytes);
  if (!text.ok()) return absl::DataLossError(text.status().message());
  if (absl::Status status = MergeYaml(*text, run.path + "/config.yaml", &run.config); !status.ok()) {
    v1::FitConfig fit;
    if (!MergeSettings(*text, run.path + "/config.yaml", &fit).ok()) return absl::DataLossError(status.message());
    SetDefaultSettings(&fit);
    run.fit = std::move(fit);
  }
  if (!run.fit && run.config.env().id().empty()) {
    return absl::DataLossError(absl::StrCat(run.path, "/config.yaml: names no environment, so it is damaged"));
  }
  ApplyDefaults(&run.config);
  run.fit ? ReadFitMetrics(&run) : ReadMetrics(&run);
  run.checkpoint = FindNewestCheckpoint(run.path);
  if (run.checkpoint) run.env_steps = std::max(run.env_steps, run.checkpoint->env_steps);
  if (!run.fit) {
    run.total_steps = run.config.total_steps();
    run.finished = run.env_steps >= run.total_steps;
  }
  const auto evaluation = ReadFile(run.path + "/eval.json", kMaxFileBytes);
  if (evaluation.ok()) run.evaluation = NumberAt(json::parse(*evaluation, nullptr, false), "return_mean");
  run.changed = ChangedAt(run.path);
  return found;
}

absl::StatusOr<std::vector<std::pair<double, double>>> ReadCurve(const RunListing& run, const std::string& metric) {
  std::vector<std::pair<double, double>> points;
  std::set<std::string> names;
  ForEachIteration(run.path, [&](const json& iteration) {
    CollectNames(iteration, "", &names);
    const auto steps = NumberAt(iteration, StepsOf(run)), value = NumberAt(iteration, metric);
    if (steps && value) points.emplace_back(*steps, *value);
  });
  if (!points.empty()) return points;
  if (names.empty()) return absl::NotFoundError(absl::StrCat(run.path, "/metrics.jsonl: has no iteration yet"));
  return absl::NotFoundError(
      absl::StrCat("run ", run.name, " has no numbers of ", Quoted(metric), "; it has ", absl::StrJoin(names, ", ")));
}

std::vector<std::pair<std::string, std::vector<std::string>>> DifferentSettings(const std::vector<RunListing>& runs) {
  std::vector<std::map<std::string, std::string>> settings;
  std::set<std::string> paths;
  for (const RunListing& run : runs) {
    auto& own = settings.emplace_back();
    run.fit ? Flatten(*run.fit, "", &own) : Flatten(run.config, "", &own);
    for (const auto& [path, value] : settings.back()) paths.insert(path);
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> different;
  for (const std::string& path : paths) {
    std::vector<std::string> values;
    for (const auto& of_run : settings) {
      const auto found = of_run.find(path);
      values.push_back(found == of_run.end() ? "-" : found->second);
    }
    if (path == "name" || std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end())
      continue;
    different.emplace_back(path, std::move(values));
  }
  return different;
}

absl::Status RemoveRun(const RunListing& run) {
  if (run.running || IsLocked(run.path)) {
    return absl::FailedPreconditionError(absl::StrCat(run.name, " is running; stop it first. Nothing was removed"));
  }
  std::error_code error;
  fs::remove_all(run.path, error);
  return error ? SystemError(error.value(), absl::StrCat("cannot remove ", run.path)) : absl::OkStatus();
}

}  // namespace skein
