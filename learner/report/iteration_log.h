// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace skein {

// metrics.jsonl: one line for each iteration of a run, a JSON object with the number "iteration".
//   Open -> KeepUpTo, when the run continues from a checkpoint or another rank's state -> Append ... -> Sync
// Lines that cannot be written, because the disk is full, are kept in memory (64 MiB at most) and written as soon as
// they can be. Not thread-safe. Several processes may have the file open, but only one may write at a time.
class IterationLog {
 public:
  // Opens the file or creates it. PermissionDenied: it cannot be written, or it is a symbolic link or no regular file.
  static absl::StatusOr<std::unique_ptr<IterationLog>> Open(const std::string& path);
  IterationLog(const IterationLog&) = delete;
  IterationLog& operator=(const IterationLog&) = delete;
  ~IterationLog();

  // Removes all lines but the last one of each iteration up to `iteration`: lines of later iterations, which are
  // trained again, and lines that a crash cut off. Returns the last iteration that is left, 0 if there is none. Errors
  // as ReadFile and WriteFileAtomically; then the file is as it was.
  absl::StatusOr<uint64_t> KeepUpTo(uint64_t iteration);

  // Adds a line; `line` has no line end. An error (as WriteFileSynced): the line is kept in memory, and the file ends
  // with a complete line if possible.
  absl::Status Append(absl::string_view line);
  // Writes what is kept in memory, and waits until all lines are on the disk. Errors as WriteFileSynced.
  absl::Status Sync();

 private:
  IterationLog(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status WritePending();

  const std::string path_;
  int fd_;
  std::string pending_;  // Complete lines.
  bool torn_ = false;    // The file may end within a line.
};

}  // namespace skein
