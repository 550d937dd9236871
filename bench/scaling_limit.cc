// SPDX-License-Identifier: Apache-2.0
#include "bench/scaling_limit.h"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/config/config_reflection.h"
#include "base/process/clock.h"
#include "base/process/file.h"
#include "base/process/subprocess.h"
#include "env/synthetic/latency.h"
#include "launch/child.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

constexpr absl::Duration kMeasureLimit = absl::Minutes(5);

}  // namespace

PhysicalLimit LatencyLimit(const v1::LatencyConfig& latency, const ScalingPoint& point) {
  if (latency.step_ms() <= 0) return {.how = "env.latency.step_ms is 0: steps take no time"};
  const double slow = std::min(latency.slow_envs(), point.environments());
  const double mean_ms = latency.step_ms() * (1 + slow / point.environments() * (latency.slow_factor() - 1));
  return {.env_steps_per_second = 1000.0 * point.runners / mean_ms,
          .how = absl::StrCat("computed: ", point.runners, point.runners == 1 ? " runner" : " runners",
                              ", each step sleeps ", config_reflection::NumberText(mean_ms), " ms on average")};
}

PhysicalLimit LimitFinder::Find(const ScalingPoint& point, const std::string& folder, const StopRequested& stop) {
  if (config_.env().id() == LatencySpec().id) return LatencyLimit(config_.env().latency(), point);
  const uint32_t threads = std::min(point.runners, std::max(1u, cores_));
  const auto known = by_threads_.find(threads);
  if (known != by_threads_.end()) return known->second;
  PhysicalLimit limit = Measure(threads, folder, stop);
  if (!stop()) by_threads_[threads] = limit;
  return limit;
}

PhysicalLimit LimitFinder::Measure(uint32_t threads, const std::string& folder, const StopRequested& stop) const {
  const auto program = FindProgram(program_folder_, "skein-bench");
  if (!program.ok()) return {.how = std::string(program.status().message())};
  const std::string json_path = folder + "/limit.json";
  const std::string log_path = folder + "/limit.log";
  auto process = Subprocess::Spawn({.argv = {*program, "env", "--env", config_.env().id(), "--threads",
                                             absl::StrCat(threads), "--json", json_path, "--rounds", "3"},
                                    .output_path = log_path});
  if (!process.ok()) return {.how = std::string(process.status().message())};
  const absl::Duration deadline = MonotonicNow() + kMeasureLimit;
  std::optional<int> code;
  while (!code && MonotonicNow() < deadline && !stop()) code = (*process)->Wait(absl::Milliseconds(50));
  const std::string text = ReadFile(json_path).value_or("");
  std::error_code ignored;
  std::filesystem::remove(json_path, ignored);
  if (code != 0) {
    return {.how = absl::StrCat("skein bench env ", code ? absl::StrCat("ended with code ", *code) : "was stopped",
                                " (log: ", log_path, ")")};
  }
  std::filesystem::remove(log_path, ignored);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto summary = json.is_object() ? json.value("summary", nlohmann::json::object()) : nlohmann::json();
  const auto rate = summary.is_object() ? summary.value("limit_env_steps_per_second", nlohmann::json()) : summary;
  if (!rate.is_number() || rate.get<double>() <= 0) return {.how = "skein bench env wrote no limit"};
  return {.env_steps_per_second = rate.get<double>(),
          .how = absl::StrCat("measured: the bare loop with ", threads, threads == 1 ? " thread" : " threads")};
}

}  // namespace skein
