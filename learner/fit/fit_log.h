// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "learner/report/event_log.h"
#include "learner/report/iteration_log.h"

namespace skein {

// metrics.jsonl and TensorBoard's files of a `skein fit`: lines of numbers at gradient steps.   Open -> Write ... ->
// Sync A number that is not finite is null in the line and left out for TensorBoard. Not thread-safe.
class FitLog {
 public:
  // Removes what follows `steps`, from which the run goes on. Errors as IterationLog and EventLog.
  static absl::StatusOr<std::unique_ptr<FitLog>> Open(const std::string& folder, uint64_t steps, bool tensorboard,
                                                      absl::Time now);

  // `numbers` by name, e.g. "loss". What cannot be written is said once.
  void Write(uint64_t steps, const std::map<std::string, double>& numbers, absl::Time now);
  void Sync();

 private:
  FitLog() = default;
  void Report(const absl::Status& status);

  std::unique_ptr<IterationLog> lines_;
  std::unique_ptr<EventLog> events_;  // Null: none is wanted.
  bool failed_ = false;
};

}  // namespace skein
