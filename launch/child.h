// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process/subprocess.h"

namespace skein {

// One of our own processes with a name for people and a log file. If this process is a rank of torchrun or a task of
// Slurm, the child does not inherit that. Not thread-safe.
class Child {
 public:
  struct Options {
    std::string name;     // "learner", "actor-1"
    std::string program;  // Path.
    std::vector<std::string> arguments;
    std::string log_path;  // Standard error and, unless captured, standard output are appended here.
    bool capture_stdout = false;
    int torch_threads = 1;               // Threads that the linear algebra library may start in it.
    std::vector<std::string> extra_env;  // "NAME=value"
  };
  // Unavailable: no such program (with what to do). Internal: the system refused.
  static absl::StatusOr<std::unique_ptr<Child>> Start(const Options& options);

  const std::string& name() const { return options_.name; }
  Subprocess& process() { return *process_; }

  // Asks it to end with SIGTERM and kills it if it has not within `timeout`. Returns its exit code.
  int Stop(absl::Duration timeout);

  // Says that it ended with `code` and why: the last line of its log after an orderly exit with an error, the last
  // few after a crash, always with the log's path.
  std::string DescribeExit(int code) const;
  // The same as a status whose ExitCodeOf() is `code` if that is one of ours, else Internal. REQUIRES: code != 0.
  absl::Status ExitStatus(int code) const;

 private:
  Child() = default;
  Options options_;
  uint64_t log_start_ = 0;  // Size of the log before it started.
  std::unique_ptr<Subprocess> process_;
};

// Path of a program that stands next to the running one, e.g. "skein-actor", in `folder`.
// Unavailable: it is not there.
absl::StatusOr<std::string> FindProgram(const std::string& folder, const std::string& name);

// Environment variables for a process that runs Torch, except those the user has set.
std::vector<std::string> ThreadEnvironment(int torch_threads);

}  // namespace skein
