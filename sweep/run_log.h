// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace skein {

// Reads one number of each line of a training's metrics.jsonl, as the file grows. Not thread-safe.
class RunLog {
 public:
  // `metric`: "episode_return_mean", "update.kl".
  RunLog(std::string path, std::string metric) : path_(std::move(path)), metric_(std::move(metric)) {}

  // Reads what is new. A file that is not there is empty; one that was cut is read again. FailedPrecondition: an
  // iteration's line has no such number (names the nearest).
  absl::Status Update();

  // The value as of the first line with at least `steps` env steps: its own, or the newest of the lines before. NaN:
  // there was none yet. nullopt: there is no such line. Once given it stays, whatever lines come later.
  std::optional<double> ValueAt(uint64_t steps) const;
  uint64_t steps() const { return lines_.empty() ? 0 : lines_.back().first; }

 private:
  absl::Status TakeLine(absl::string_view line);

  const std::string path_, metric_;
  uint64_t offset_ = 0;  // Read so far: complete lines.
  uint64_t inode_ = 0;
  std::vector<std::pair<uint64_t, double>> lines_;  // Env steps, value or NaN.
};

}  // namespace skein
