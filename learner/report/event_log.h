// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/telemetry/event_file.h"
#include "learner/report/update_samples.h"
#include "skein/v1/status.pb.h"

namespace skein::tensorboard {
class Event;
class HistogramProto;
}  // namespace skein::tensorboard

namespace skein {

// Writes a run's TensorBoard events. Only this file pair names tags.   RunProgress, UpdateSamples -> event file
// Steps are env steps. A failure to write is logged once and otherwise ignored. Not thread-safe.
class EventLog {
 public:
  static constexpr absl::Duration kSampleInterval = absl::Seconds(10);
  static constexpr int64_t kMaxActions = 16;  // Dimensions of an action that get a histogram, at most.

  // Removes from the event files in `folder` what follows `env_steps`, from which the run continues, and records that a
  // crash cut off. Links are left alone. Errors as EventFile::Trim.
  static absl::Status KeepUpTo(const std::string& folder, uint64_t env_steps);

  // Begins a new file in `folder` for a process that starts from `env_steps`. TensorBoard then discards the events of
  // later steps in earlier files. Errors as EventFile.
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(const std::string& folder, uint64_t env_steps, absl::Time now);

  // Logs the finite numbers of the progress after an iteration.
  void LogIteration(const v1::RunProgress& progress, absl::Time now);

  // Logs finite numbers by their tags.
  void LogNumbers(const std::map<std::string, double>& numbers, uint64_t step, absl::Time now);

  // Waits until all events are on the disk. A failure is ignored.
  void Sync() { file_->Sync().IgnoreError(); }

  // Whether kSampleInterval has passed since the last samples, or there were none.
  bool SamplesDue(absl::Time now) const { return now - sampled_ >= kSampleInterval; }
  void LogSamples(const UpdateSamples& samples, uint64_t env_steps, absl::Time now);

 private:
  EventLog(std::unique_ptr<EventFile> file, absl::Time now) : file_(std::move(file)), logged_(now) {}
  void Write(const tensorboard::Event& event);

  const std::unique_ptr<EventFile> file_;
  absl::Time logged_;                            // Time of the last iteration.
  absl::Time sampled_ = absl::InfinitePast();    // Time of the last samples.
  std::map<std::string, double> stage_seconds_;  // As of the last iteration.
  bool failed_ = false;
};

// A histogram of the finite numbers in `values`, with 30 buckets of equal width; if `whole`, with one bucket for each
// whole number if their range has at most 100. The last bucket ends at the greatest value.
tensorboard::HistogramProto MakeHistogram(const std::vector<float>& values, bool whole);

}  // namespace skein
