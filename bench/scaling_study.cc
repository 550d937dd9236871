// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_study.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/config/config.h"
#include "base/process/clock.h"
#include "base/process/cores.h"
#include "base/process/file.h"
#include "base/telemetry/format_count.h"
#include "base/telemetry/format_seconds.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/scaling_limit.h"
#include "bench/scaling_report.h"

namespace skein {
namespace {

using Json = nlohmann::ordered_json;

// `spent` on training with `measured` configurations in this session.
std::string Progress(const ScalingMeasurement& row, size_t done, size_t all, absl::Duration spent, size_t measured) {
  const double seconds = row.times.total_seconds();
  const auto rate = static_cast<uint64_t>(std::llround(static_cast<double>(row.times.env_steps) / seconds));
  const double left = absl::ToDoubleSeconds(spent) / static_cast<double>(measured) * static_cast<double>(all - done);
  return absl::StrFormat("[%d/%d] %s: %.3f s an iteration, %s env-steps/s, CPU %.0f %%%s", done, all, row.point.name(),
                         seconds / static_cast<double>(row.times.seconds.size()), FormatCount(rate),
                         100 * SummarizeCpu(row.usage).average,
                         done < all ? absl::StrCat("; about ", FormatSeconds(left), " left") : "");
}

// The rows in the order of the grid.
void SortRows(const std::vector<ScalingPoint>& grid, std::vector<ScalingMeasurement>* rows) {
  const auto place = [&grid](const ScalingMeasurement& row) { return std::find(grid.begin(), grid.end(), row.point); };
  std::stable_sort(rows->begin(), rows->end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

absl::Status WriteResults(const ScalingOptions& options, const ScalingResults& results) {
  const std::string text = ToJson(results, Analyze(results)).dump(1) + "\n";
  if (absl::Status s = WriteFileAtomically(options.out + "/results.json", text); !s.ok()) return s;
  return options.json_path.empty() ? absl::OkStatus() : WriteFileAtomically(options.json_path, text);
}

absl::Status PrepareFolder(const ScalingOptions& options, ScalingResults* results) {
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error) return absl::PermissionDeniedError(absl::StrCat(options.out, ": cannot be made: ", error.message()));
  const std::string path = options.out + "/results.json";
  if (!std::filesystem::exists(path, error)) return absl::OkStatus();
  if (!options.resume) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " is there already: --resume goes on with it, another --out begins anew"));
  }
  return LoadResults(path, results);
}

Json StudyMachine(const GpuMonitor* monitor) {
  std::vector<std::string> gpus;
  if (monitor != nullptr) {
    for (const GpuInfo& gpu : monitor->gpus()) gpus.push_back(gpu.name);
  }
  Json machine = DescribeMachine("");
  machine["gpus"] = gpus;
  return machine;
}

}  // namespace

Json StudyConfigJson(const ScalingOptions& options, const v1::RunConfig& config) {
  const TrainingSetup& setup = options.setup;
  Json grid = Json::array();
  for (const ScalingPoint& point : options.grid) grid.push_back(point.name());
  return {{"env", config.env().id()},
          {"configurations", std::move(grid)},
          {"iterations", setup.iterations},
          {"warmup", setup.warmup},
          {"seed", setup.seed},
          {"steps_per_iteration", setup.steps_per_env > 0 ? Json() : Json(setup.steps_per_iteration)},
          {"steps_per_env", setup.steps_per_env > 0 ? Json(setup.steps_per_env) : Json()},
          {"actors", setup.actors},
          {"recipe", setup.recipe},
          {"settings", setup.overrides},
          {"run_config", ToYaml(config)}};
}

absl::Status LoadResults(const std::string& path, ScalingResults* results) {
  const auto text = ReadFile(path);
  if (!text.ok()) return text.status();
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("config") || !json.contains("rows") || !json["rows"].is_array()) {
    return absl::DataLossError(absl::StrCat(path, ": not what this command writes"));
  }
  for (const auto& [key, value] : results->config.items()) {
    // The grid may have grown.
    if (key == "configurations" || (json["config"].contains(key) && json["config"][key] == value)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is of a study with another '", key, "'; another --out begins anew"));
  }
  const Json machine = json.value("machine", Json::object());
  for (const char* key : {"cpu", "cores", "memory_bytes"}) {
    if (machine.value(key, Json()) == results->machine.value(key, Json())) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is of another machine ('", key, "' differs); another --out begins anew"));
  }
  for (const Json& row : json["rows"]) {
    auto measured = MeasurementFromJson(row.value("raw", Json()));
    if (!measured.ok()) return absl::DataLossError(absl::StrCat(path, ": ", measured.status().message()));
    results->rows.push_back(*std::move(measured));
  }
  const Json limits = json.value("limits", Json::object());
  for (const auto& [name, limit] : limits.items()) {
    PhysicalLimit& known = results->limits[name];
    const Json rate = limit.value("env_steps_per_second", Json());
    if (rate.is_number()) known.env_steps_per_second = rate.get<double>();
    known.how = limit.value("how", "");
  }
  return absl::OkStatus();
}

absl::StatusOr<ScalingAnalysis> RunScalingStudy(const ScalingOptions& options, const StopRequested& stop,
                                                const std::function<void(const std::string&)>& say) {
  const auto config = ReadSetupConfig(options.setup);
  if (!config.ok()) return config.status();
  for (const ScalingPoint& point : options.grid) {
    const auto possible = TrainingOptions(options.setup, point, options.out);
    if (possible.ok()) continue;
    return absl::Status(possible.status().code(), absl::StrCat(point.name(), ": ", possible.status().message()));
  }
  const auto gpu = GpuMonitor::Open(MonotonicNow());
  ScalingResults results;
  if (!gpu.ok()) {
    results.gpu_reason = std::string(gpu.status().message());
  } else if (!MeanUtilization((*gpu)->Sample(MonotonicNow()))) {
    results.gpu_reason = "the NVIDIA driver does not tell how busy its GPUs are";
  }
  results.machine = StudyMachine(gpu.ok() ? gpu->get() : nullptr);
  results.config = StudyConfigJson(options, *config);
  if (absl::Status s = PrepareFolder(options, &results); !s.ok()) return s;

  LimitFinder limits(options.setup.program_folder, *config, Cores());
  absl::Duration spent;
  size_t measured_now = 0;
  for (const ScalingPoint& point : options.grid) {
    const bool known = std::any_of(results.rows.begin(), results.rows.end(),
                                   [&](const ScalingMeasurement& row) { return row.point == point; });
    if (!known) {
      const absl::Duration begin = MonotonicNow();
      auto row = MeasureTraining(options.setup, point, options.out, gpu.ok() ? gpu->get() : nullptr, stop);
      if (!row.ok()) return row.status();
      spent += MonotonicNow() - begin;
      results.rows.push_back(*row);
      SortRows(options.grid, &results.rows);
      if (absl::Status s = WriteResults(options, results); !s.ok()) return s;
      say(Progress(*row, results.rows.size(), options.grid.size(), spent, ++measured_now));
    }
    if (options.limit && results.limits.count(point.name()) == 0) {
      const PhysicalLimit limit = limits.Find(point, options.out, stop);
      if (stop()) return absl::CancelledError("stopped on request");
      results.limits[point.name()] = limit;
    }
  }
  if (absl::Status s = WriteResults(options, results); !s.ok()) return s;
  ScalingAnalysis analysis = Analyze(results);
  if (absl::Status s = WriteFileAtomically(options.out + "/report.md", FormatScalingReport(results, analysis));
      !s.ok()) {
    return s;
  }
  return analysis;
}

}  // namespace skein
