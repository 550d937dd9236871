// SPDX-License-Identifier: Apache-2.0
#include "bench/training_log.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace skein {
namespace {

constexpr size_t kFirst = 1;  // The line at whose end the clock starts.

absl::StatusOr<SteadyState> Read(const std::vector<Json>& lines) {
  if (lines.size() < static_cast<size_t>(kMinIterations)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the run had ", lines.size(), " iterations, want at least ", kMinIterations));
  }
  const Json& begin = lines[kFirst];
  const size_t last = lines.size() - 2;
  const Json& end = lines[last];
  SteadyState figures;
  figures.iterations = last - kFirst;
  figures.env_steps = end.at("env_steps").get<uint64_t>() - begin.at("env_steps").get<uint64_t>();
  figures.seconds = end.at("seconds").get<double>() - begin.at("seconds").get<double>();
  for (const auto& stage : end.at("learner_stage_seconds").items()) {
    figures.learner_seconds[stage.key()] =
        stage.value().get<double>() - begin.at("learner_stage_seconds").value(stage.key(), 0.0);
  }
  for (size_t i = kFirst + 1; i <= last; ++i) {
    figures.samples += lines[i].value("samples", uint64_t{0});
    for (const auto& stage : lines[i].at("actor_stage_seconds").items()) {
      figures.actor_seconds[stage.key()] = figures.actor_seconds.value(stage.key(), 0.0) + stage.value().get<double>();
    }
  }
  return figures;
}

}  // namespace

double SteadyState::update_seconds_per_env_step() const {
  const double seconds = learner_seconds.value("update_cpu", learner_seconds.value("update", 0.0));
  return seconds / static_cast<double>(env_steps);
}

absl::StatusOr<SteadyState> ReadTrainingLog(const std::string& text) {
  try {
    std::vector<Json> lines;
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
      lines.push_back(Json::parse(line.begin(), line.end()));
    }
    return Read(lines);
  } catch (const Json::exception& error) {
    return absl::DataLossError(absl::StrCat("metrics.jsonl: ", error.what()));
  }
}

double OverheadShare(const SteadyState& figures, double runners, v1::SyncMode mode) {
  const Json& actors = figures.actor_seconds;
  const double waiting = actors.value("wait", 0.0);
  double collecting = actors.value("env_step", 0.0) + actors.value("inference", 0.0) + actors.value("build", 0.0);
  const double updating = figures.learner_seconds.value("update", 0.0) / figures.seconds;
  if (mode == v1::SYNC_MODE_OVERLAPPED || mode == v1::SYNC_MODE_ASYNC) {
    const double all = collecting + waiting;
    return all > 0 ? std::max(0.0, std::min(waiting / all, 1 - updating)) : 0;
  }
  if (mode == v1::SYNC_MODE_ON_DEVICE) collecting += waiting;
  return std::max(0.0, 1 - collecting / runners / figures.seconds - updating);
}

}  // namespace skein
