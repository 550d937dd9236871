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

// What TensorBoard shows of a run; the one place that knows its tags.   RunProgress, UpdateSamples -> event file
// Steps are env steps. A failure to write is logged once and otherwise ignored. Not thread-safe.
class EventLog {
 public:
  static constexpr absl::Duration kSampleInterval = absl::Seconds(10);
  static constexpr int64_t kMaxActions = 16;  // Numbers of an action that have a histogram.

  // Begins a new file in `folder` for a process that starts from `env_steps`; what earlier files say about later steps
  // counts no more. Errors as EventFile.
  static absl::StatusOr<std::unique_ptr<EventLog>> Open(const std::string& folder, uint64_t env_steps, absl::Time now);

  // The numbers after an iteration, those that are finite.
  void LogIteration(const v1::RunProgress& progress, absl::Time now);

  // Whether kSampleInterval is over since the last samples, or there were none.
  bool SamplesDue(absl::Time now) const { return now - sampled_ >= kSampleInterval; }
  void LogSamples(const UpdateSamples& samples, uint64_t env_steps, absl::Time now);

 private:
  EventLog(std::unique_ptr<EventFile> file, absl::Time now) : file_(std::move(file)), logged_(now) {}
  void Write(const tensorboard::Event& event);

  const std::unique_ptr<EventFile> file_;
  absl::Time logged_;                            // The last iteration.
  absl::Time sampled_ = absl::InfinitePast();    // The last samples.
  std::map<std::string, double> stage_seconds_;  // As of the last iteration.
  bool failed_ = false;
};

// Of the finite ones among `values`: 30 buckets of the same width; if `whole`, one for each whole number as long as
// there are at most 100. The last bucket ends at the greatest value.
tensorboard::HistogramProto MakeHistogram(const std::vector<float>& values, bool whole);

}  // namespace skein
