// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "spdlog/sinks/ringbuffer_sink.h"

namespace skein {

// The last lines of the run's log, for the status page: those of the file that the run's processes on this host share,
// or without a file those of this process. Lines are text that other processes wrote, so they are cut to
// kMostMessageBytes, control characters become spaces and the run's token becomes "[token]". Thread-safe.
class LogTail {
 public:
  static constexpr size_t kMostLines = 200;
  static constexpr size_t kMostMessageBytes = 2000;
  static constexpr size_t kMostFileBytes = size_t{256} << 10;  // Read from the end of the file.

  // `path`: a log of JSON lines as InitLog() writes it; empty = keep what the default logger gets from now on.
  // `secret`: the token; empty = none.
  LogTail(std::string path, std::string secret);

  // [{"time": "2026-01-31T12:00:00.000Z", "level": "info", "program": "skein-learner", "message": "..."}, ...], the
  // oldest first. Lines of the file that are no such objects are left out. Unavailable: the file cannot be read, or is
  // no regular file; a symbolic link is not followed.
  absl::StatusOr<std::string> Json() const;

 private:
  const std::string path_;
  const std::string secret_;
  std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> own_;  // Null with a path.
};

}  // namespace skein
