// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process/share_enforcer.h"
#include "base/process/subprocess.h"

namespace skein {

// A child process that runs one of Skein's programs, with a display name and a log file. The child does not inherit the
// environment of torchrun or Slurm, if this process is a rank or a task of those. Not thread-safe.
class Child {
 public:
  struct Options {
    std::string name;     // "learner", "actor-1"
    std::string program;  // Path.
    std::vector<std::string> arguments;
    std::string log_path;  // Standard error and, unless captured, standard output are appended here.
    bool capture_stdout = false;
    int torch_threads = 1;               // Threads that its linear algebra library may start.
    std::vector<std::string> extra_env;  // "NAME=value"
    ResourceShare share;
    ShareEnforcer* enforcer = nullptr;  // Holds it to `share`; null: not held. Must outlive the child.
  };
  // Unavailable: no such program (says what to do). PermissionDenied: the log is a symbolic link. Internal: the system
  // could not start it. Others: as ShareEnforcer::Hold().
  static absl::StatusOr<std::unique_ptr<Child>> Start(const Options& options);

  const std::string& name() const { return options_.name; }
  Subprocess& process() { return *process_; }
  // By what it is held to its share, for people; empty if it has none.
  std::string held_by() const { return held_ == nullptr ? "" : held_->how(); }

  // Sends SIGTERM, and kills it if it has not ended within `timeout`. Returns its exit code.
  int Stop(absl::Duration timeout);

  // Describes the exit with `code` and its cause: the last line of its log after an orderly exit with an error, the
  // last few lines after a crash; always with the path of the log.
  std::string DescribeExit(int code) const;
  // The same as a status. Its ExitCodeOf() is `code` if that is one of Skein's codes, else Internal.
  // REQUIRES: code != 0.
  absl::Status ExitStatus(int code) const;

 private:
  Child() = default;
  Options options_;
  uint64_t log_start_ = 0;           // Size of the log before it started.
  std::unique_ptr<HeldShare> held_;  // Null: it has no share. Ends after the process.
  std::unique_ptr<Subprocess> process_;
};

// Path of the program `name`, e.g. "skein-actor", in `folder`, the running program's. Unavailable: it is missing.
absl::StatusOr<std::string> FindProgram(const std::string& folder, const std::string& name);

// Environment variables for a process that runs Torch, without those that the user has set.
std::vector<std::string> ThreadEnvironment(int torch_threads);

}  // namespace skein
