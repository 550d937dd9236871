// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/config/resume_mode.h"
#include "skein/v1/config.pb.h"

namespace skein {

// The newest complete checkpoint of a run, as its manifest tells.
struct CheckpointInfo {
  std::string path;
  uint64_t env_steps = 0;
  std::string digest;  // Empty if the manifest does not tell.
};

// Figures are 0 and empty where the manifest does not tell.
CheckpointInfo ReadCheckpointInfo(const std::string& path);

// The folder runs/<name> of one run, locked for as long as this object lives.
//   runs/<name>/{config.yaml, lock, log.jsonl, log/<process>.log, checkpoints/, eval.json}
// Move-only. Not thread-safe.
class RunDirectory {
 public:
  // Makes the folder or takes up the one that is there, locks it and writes config.yaml. The children of a skein that
  // was killed end by themselves; it waits for those noted in the lock file, 10 s at most. kNever: a folder that is
  // there is renamed to <name>.old-1 (or -2, ...) first. kMust: there must be a checkpoint. Unavailable: another
  // process uses it (says which). FailedPrecondition: it has checkpoints of a configuration that differs in what is
  // learned (names the first key). NotFound: kMust and no checkpoint. DataLoss: its config.yaml cannot be read.
  // PermissionDenied, ResourceExhausted: cannot be written.
  static absl::StatusOr<RunDirectory> Open(const std::string& runs_dir, const v1::RunConfig& config, ResumeMode resume);
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&& other) noexcept;
  ~RunDirectory();

  const std::string& path() const { return path_; }
  std::string config_path() const { return path_ + "/config.yaml"; }
  std::string log_path(const std::string& process) const { return path_ + "/log/" + process + ".log"; }
  // Coordinator, learner and local actors append to it.
  std::string json_log_path() const { return path_ + "/log.jsonl"; }
  std::string eval_path() const { return path_ + "/eval.json"; }
  // Where the folder that was there before has gone; empty if it was not moved.
  const std::string& moved_to() const { return moved_to_; }

  std::optional<CheckpointInfo> NewestCheckpoint() const;
  // Notes a child that writes into the folder and may outlive this process for a moment.
  absl::Status NoteChild(pid_t pid) const;

 private:
  RunDirectory() = default;
  std::string path_;
  std::string moved_to_;
  int lock_fd_ = -1;
};

// First setting in which the two differ, as "a.b: old -> new"; nullopt if there is none. Leaves out what may change
// between two sessions of a run because it does not touch what is learned, or by rounding only: total_steps,
// checkpoint, coordinator, eval, logging, and where and how learner computes (all of it but torch_threads and the
// precisions).
std::optional<std::string> FirstDifference(const v1::RunConfig& old_config, const v1::RunConfig& new_config);

// Names a run for its members: the same for configurations without a FirstDifference(), so that workers find back to a
// run that was stopped and continued.
std::string RunId(const v1::RunConfig& config);

}  // namespace skein
