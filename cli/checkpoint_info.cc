// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint_info.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "base/process/file.h"
#include "learner/run/checkpoint.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxManifestBytes = 1 << 20;

// Paths of the run's complete checkpoints, newest first.
std::vector<std::string> CompleteCheckpoints(const std::string& run_path) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(run_path + "/checkpoints", error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (absl::StartsWith(it->path().filename().string(), "step_") && fs::exists(it->path() / "DONE", ignored)) {
      paths.push_back(it->path());
    }
  }
  std::sort(paths.begin(), paths.end(), std::greater<>());
  return paths;
}

// Sets the account's field of that name, if it has one.
void SetCounter(const nlohmann::json& counter, v1::StepAccount* account) {
  if (!counter.is_array() || counter.size() != 2 || !counter[0].is_string() || !counter[1].is_number_unsigned()) return;
  const auto* const field = v1::StepAccount::GetDescriptor()->FindFieldByName(counter[0].get<std::string>());
  if (field != nullptr) v1::StepAccount::GetReflection()->SetUInt64(account, field, counter[1].get<uint64_t>());
}

}  // namespace

CheckpointInfo ReadCheckpointInfo(const std::string& path) {
  CheckpointInfo info;
  info.path = path;
  const auto manifest = ReadFile(info.path + "/manifest.json", kMaxManifestBytes);
  if (!manifest.ok()) return info;
  const auto json = nlohmann::json::parse(*manifest, nullptr, false);
  if (!json.is_object()) return info;
  if (const auto it = json.find("env_steps"); it != json.end() && it->is_number_unsigned()) info.env_steps = *it;
  if (const auto it = json.find("digest"); it != json.end() && it->is_string()) info.digest = *it;
  if (const auto it = json.find("counters"); it != json.end() && it->is_array()) {
    for (const auto& counter : *it) SetCounter(counter, &info.account);
  }
  return info;
}

std::optional<CheckpointInfo> FindNewestCheckpoint(const std::string& run_path) {
  const std::vector<std::string> paths = CompleteCheckpoints(run_path);
  if (paths.empty()) return std::nullopt;
  return ReadCheckpointInfo(paths.front());
}

std::optional<CheckpointInfo> FindNewestIntactCheckpoint(const std::string& run_path) {
  for (const std::string& path : CompleteCheckpoints(run_path)) {
    std::error_code ignored;
    if (!fs::is_symlink(fs::symlink_status(path, ignored)) && LoadCheckpoint(path).ok())
      return ReadCheckpointInfo(path);
  }
  return std::nullopt;
}

absl::Status CheckCheckpoint(const std::string& path) { return FindCheckpoint(path).status(); }

}  // namespace skein
