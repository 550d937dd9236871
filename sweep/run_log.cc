// SPDX-License-Identifier: Apache-2.0
#include "sweep/run_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/config/nearest_name.h"
#include "base/process/message_text.h"
#include "nlohmann/json.hpp"

namespace skein {
namespace {

using Json = nlohmann::json;

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

void CollectNumbers(const Json& object, const std::string& prefix, std::vector<std::string>* names) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      CollectNumbers(value, absl::StrCat(prefix, key, "."), names);
    } else if (value.is_number() || value.is_null()) {
      names->push_back(prefix + key);
    }
  }
}

}  // namespace

absl::Status RunLog::Update() {
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return absl::OkStatus();
  const absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat state;
  if (fstat(fd, &state) != 0) return absl::OkStatus();
  if (state.st_ino != inode_ || static_cast<uint64_t>(state.st_size) < offset_) {
    inode_ = state.st_ino;
    offset_ = 0;
    lines_.clear();
  }
  std::string text(static_cast<uint64_t>(state.st_size) - offset_, '\0');
  const ssize_t got = pread(fd, text.data(), text.size(), static_cast<off_t>(offset_));
  if (got <= 0) return absl::OkStatus();
  absl::string_view left(text.data(), static_cast<size_t>(got));
  for (size_t end = left.find('\n'); end != absl::string_view::npos; end = left.find('\n')) {
    if (absl::Status status = TakeLine(left.substr(0, end)); !status.ok()) return status;
    offset_ += end + 1;
    left.remove_prefix(end + 1);
  }
  return absl::OkStatus();
}

absl::Status RunLog::TakeLine(absl::string_view line) {
  const Json json = Json::parse(line.begin(), line.end(), nullptr, false);
  if (!json.is_object() || !json.contains("env_steps") || !json["env_steps"].is_number_unsigned()) {
    return absl::OkStatus();
  }
  const uint64_t steps = json["env_steps"];
  // What was trained again after a crash.
  while (!lines_.empty() && lines_.back().first >= steps) lines_.pop_back();
  const Json* value = &json;
  // "callback.a.b" is "a.b" in the section "callback".
  const std::vector<std::string> names = absl::StrSplit(metric_, absl::MaxSplits('.', 1));
  for (size_t i = 0; i < names.size() && value != nullptr; ++i) {
    value = value->is_object() && value->contains(names[i]) ? &(*value)[names[i]] : nullptr;
  }
  // Metrics of episodes are there once one has ended, those of callbacks when these log them.
  const bool late = steps == 0 || json.value("iteration", 0) == 0 || absl::StartsWith(metric_, "episode_metrics.") ||
                    absl::StartsWith(metric_, "callback.");
  if (value == nullptr && !late) {
    std::vector<std::string> known;
    CollectNumbers(json, "", &known);
    if (known.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat("metric: ", path_, " has no ", Quoted(metric_),
                                                      "; the nearest is '",
                                                      known[FindNearestName(metric_, known, '.').index], "'"));
  }
  lines_.emplace_back(steps, value != nullptr && value->is_number() ? value->get<double>() : kNoValue);
  return absl::OkStatus();
}

std::optional<double> RunLog::ValueAt(uint64_t steps) const {
  double newest = kNoValue;
  for (const auto& [at, value] : lines_) {
    if (!std::isnan(value)) newest = value;
    if (at >= steps) return newest;
  }
  return std::nullopt;
}

}  // namespace skein
