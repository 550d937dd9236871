// SPDX-License-Identifier: Apache-2.0
#include "learner/fit/fit_log.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace skein {

absl::StatusOr<std::unique_ptr<FitLog>> FitLog::Open(const std::string& folder, uint64_t steps, bool tensorboard,
                                                     absl::Time now) {
  std::unique_ptr<FitLog> log(new FitLog());
  auto lines = IterationLog::Open(absl::StrCat(folder, "/metrics.jsonl"));
  if (!lines.ok()) return lines.status();
  log->lines_ = *std::move(lines);
  if (const auto kept = log->lines_->KeepUpTo(steps); !kept.ok()) return kept.status();
  if (!tensorboard) return log;
  if (absl::Status s = EventLog::KeepUpTo(folder, steps); !s.ok()) return s;
  auto events = EventLog::Open(folder, steps, now);
  if (!events.ok()) return events.status();
  log->events_ = *std::move(events);
  return log;
}

void FitLog::Write(uint64_t steps, const std::map<std::string, double>& numbers, absl::Time now) {
  nlohmann::ordered_json line = {{"iteration", steps}, {"time", absl::ToDoubleSeconds(now - absl::UnixEpoch())}};
  std::map<std::string, double> tags;
  for (const auto& [name, value] : numbers) {
    tags[absl::StrCat("fit/", name)] = value;
    if (!std::isfinite(value)) {
      line[name] = nullptr;
    } else if (value == std::floor(value) && std::abs(value) < 0x1p53) {
      line[name] = static_cast<int64_t>(value);
    } else {
      line[name] = value;
    }
  }
  Report(lines_->Append(line.dump()));
  if (events_ != nullptr) events_->LogNumbers(tags, steps, now);
}

void FitLog::Sync() {
  Report(lines_->Sync());
  if (events_ != nullptr) events_->Sync();
}

void FitLog::Report(const absl::Status& status) {
  if (status.ok() || failed_) return;
  failed_ = true;
  spdlog::warn("metrics.jsonl: {}; lines are kept in memory meanwhile", std::string(status.message()));
}

}  // namespace skein
