// SPDX-License-Identifier: Apache-2.0
#include "learner/run/run_checkpoints.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/process/clock.h"
#include "base/telemetry/log.h"
#include "learner/ranks/rank_group.h"

namespace skein {

RunCheckpoints::RunCheckpoints(const RunContext& context)
    : context_(context), folder_(context.options.run_directory + "/checkpoints") {}

absl::StatusOr<RunRecord> RunCheckpoints::Resume(Trainer* trainer) {
  RunRecord record;
  const ResumeMode mode = context_.options.resume;
  if (mode != ResumeMode::kNever) {
    auto resumed = trainer->Resume(folder_, mode == ResumeMode::kMust);
    if (resumed.ok()) {
      record = resumed->record;
      saved_env_steps_ = record.env_steps;
      newest_ = resumed->checkpoint;
      for (const std::string& warning : resumed->warnings) spdlog::warn("{}", warning);
      context_.metrics->CountDamagedCheckpoints(resumed->warnings.size());
      spdlog::info("resumed from {} at {} env steps", resumed->checkpoint.path, record.env_steps);
    } else if (resumed.status().code() != absl::StatusCode::kNotFound || mode == ResumeMode::kMust) {
      return AsLostRank(resumed.status());
    }
  }
  if (const std::string& from = context_.config.learner().init_from(); record.iteration == 0 && !from.empty()) {
    if (absl::Status s = trainer->InitFrom(); !s.ok()) return AsLostRank(std::move(s));
    spdlog::info("begins with the weights of {}", from);
  }
  Schedule(saved_env_steps_);
  return record;
}

void RunCheckpoints::GoOnFrom(const Trainer::Saved& newest, uint64_t env_steps) {
  newest_ = newest;
  const uint64_t interval = std::max<uint64_t>(1, context_.config.checkpoint().interval_steps());
  next_ = (env_steps / interval + 1) * interval;
}

absl::Status RunCheckpoints::Save(const Trainer& trainer, const RunRecord& record) {
  if (record.iteration == 0 || record.env_steps == saved_env_steps_) return absl::OkStatus();
  const absl::Duration begin = MonotonicNow();
  auto saved = trainer.Save(folder_, record);
  const absl::Duration end = MonotonicNow(), duration = end - begin;
  failures_.Note(saved.ok(), end);
  context_.metrics->CountCheckpoint(saved.ok(), duration, absl::Now());
  context_.metrics->AddStage(LearnerMetrics::Stage::kCheckpoint, duration);
  if (!saved.ok()) {
    const std::string error = absl::StrCat("checkpoint not written: ", std::string(saved.status().message()));
    spdlog::error("{}", error);
    return absl::Status(saved.status().code(), error);
  }
  saved_env_steps_ = record.env_steps;
  newest_ = *saved;
  spdlog::info("checkpoint {} digest {}", saved->path, saved->digest);
  return absl::OkStatus();
}

}  // namespace skein
