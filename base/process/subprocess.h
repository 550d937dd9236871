// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process/process_guard.h"

namespace skein {

// A child process (posix_spawn) in its own process group, with default signal handling, empty standard input and
// SKEIN_PARENT_PID set. Not thread-safe. The destructor kills and reaps a child that still runs.
class Subprocess {
 public:
  struct Options {
    std::vector<std::string> argv;       // argv[0] is a path.
    std::string output_path;             // Standard output and error are appended here; empty = inherited.
    bool capture_stdout = false;         // ReadLine() reads standard output instead.
    bool stdout_to_stderr = false;       // Standard output goes where standard error goes.
    std::vector<int> inherited_fds;      // The child has them as descriptors 3, 4, ...
    std::vector<std::string> extra_env;  // "NAME=value", added to this process's environment.
    std::vector<std::string> unset_env;  // Names that are removed from the environment first.
    // May not notice when this process has gone: it is killed then, with what it has started. That is also killed where
    // the program ends by itself.
    bool foreign = false;
  };
  // NotFound: no such program. PermissionDenied: output_path is a symbolic link. Internal: the system could not start
  // it.
  static absl::StatusOr<std::unique_ptr<Subprocess>> Spawn(const Options& options);
  ~Subprocess();

  pid_t pid() const { return pid_; }
  // Exit code, or 128 + signal; nullopt while it runs.
  std::optional<int> Poll();
  // Waits until the child has ended or the timeout is over.
  std::optional<int> Wait(absl::Duration timeout);
  void Signal(int signal_number);
  // Next line of captured standard output without its newline. DeadlineExceeded; OutOfRange at the end.
  absl::StatusOr<std::string> ReadLine(absl::Duration timeout);
  // All that are left, when the output has ended. DeadlineExceeded. Cancelled: `given_up` returned true. It is called
  // about every 20 ms.
  absl::StatusOr<std::vector<std::string>> ReadLines(
      absl::Duration timeout, const std::function<bool()>& given_up = [] { return false; });

 private:
  Subprocess() = default;
  pid_t pid_ = -1;
  int pid_fd_ = -1;
  int stdout_fd_ = -1;
  std::string buffer_;
  std::optional<int> exit_;
  std::optional<ProcessGuard> guard_;  // Of a foreign program, until it has been reaped.
};

// This process's environment without the names in `unset` and with `extra` added; a name in `extra` replaces the
// inherited one.
std::vector<std::string> ChildEnvironment(const std::vector<std::string>& unset, const std::vector<std::string>& extra);

// Folder of the running program, to find its siblings.
std::string ProgramFolder();

// The program that runs Python on this node: what a setting names; where it is empty or python3, its default, what
// SKEIN_PYTHON names, if that is set.
std::string PythonProgram(const std::string& setting);

// "PYTHONPATH=...": this process's, and behind it the folder that has the package skein_env: beside the programs, or
// where `make install` puts it. For a Python that has not installed it.
std::string PythonPathVariable();

}  // namespace skein
