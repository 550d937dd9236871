// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/config/resume_mode.h"
#include "cli/checkpoint_info.h"
#include "skein/v1/config.pb.h"

namespace skein {

// The folder runs/<name> of one run, locked for as long as this object lives.
//   runs/<name>/{config.yaml, lock, log.jsonl, log/<process>.log, checkpoints/, eval.json}
// Move-only. Not thread-safe.
class RunDirectory {
 public:
  // Makes the folder or opens the existing one, locks it and writes config.yaml. If an earlier skein was killed, its
  // children (noted in the lock file) end by themselves; waits for them for up to 10 s. kNever: an existing folder is
  // first renamed to <name>.old-1 (or -2, ...). kMust: a checkpoint must exist. Unavailable: another process uses the
  // folder (names it). FailedPrecondition: its checkpoints are of a configuration that differs in what is learned
  // (names the first key). NotFound: kMust and no checkpoint. DataLoss: its config.yaml cannot be read.
  // PermissionDenied, ResourceExhausted: the folder cannot be written.
  static absl::StatusOr<RunDirectory> Open(const std::string& runs_dir, const v1::RunConfig& config, ResumeMode resume);
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&& other) noexcept;
  ~RunDirectory();

  const std::string& path() const { return path_; }
  std::string config_path() const { return path_ + "/config.yaml"; }
  std::string log_path(const std::string& process) const { return path_ + "/log/" + process + ".log"; }
  // The log to which coordinator, learner and local actors append.
  std::string json_log_path() const { return path_ + "/log.jsonl"; }
  std::string eval_path() const { return path_ + "/eval.json"; }
  // New path of the earlier folder; empty if it was not moved.
  const std::string& moved_to() const { return moved_to_; }
  // The folders <name>.old-1, <name>.old-2, ... that there are.
  struct OldCopies {
    uint64_t count = 0;
    uint64_t bytes = 0;
  };
  OldCopies FindOldCopies() const;

  // As the functions of checkpoint_info.h.
  std::optional<CheckpointInfo> NewestCheckpoint() const { return FindNewestCheckpoint(path_); }
  std::optional<CheckpointInfo> NewestIntactCheckpoint() const { return FindNewestIntactCheckpoint(path_); }
  // PermissionDenied: the folder or its lock file was deleted or replaced. This run has lost its lock then: another one
  // may use the folder's name.
  absl::Status CheckIsThere() const;
  // Notes in the lock file a child that writes into the folder and may briefly outlive this process.
  absl::Status NoteChild(pid_t pid) const;

 private:
  RunDirectory() = default;
  std::string path_;
  std::string moved_to_;
  int lock_fd_ = -1;
};

// The first setting in which the two differ, as "a.b: old -> new", or "algorithm: old -> new"; nullopt if there is
// none. Ignores settings that may change between sessions of a run because they do not affect what is learned, except
// by rounding: total_steps, callbacks, checkpoint, coordinator, eval, logging, resources, compression in transport, all
// of learner except torch_threads, gradient_parts and the precisions, time limits and retries of environments, and
// directions.dir_chunk of a search. REQUIRES: defaults are applied.
std::optional<std::string> FirstDifference(const v1::RunConfig& old_config, const v1::RunConfig& new_config);

// The run id for members. Configurations without a FirstDifference() have the same id, so workers can rejoin a run that
// was stopped and continued.
std::string RunId(const v1::RunConfig& config);

}  // namespace skein
