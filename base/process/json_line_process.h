// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/process/process_guard.h"
#include "nlohmann/json.hpp"

namespace skein {

// A child process that answers each JSON object on a line of its standard input with one on its standard output. It
// ends when its input does, or else is killed once this process has gone. Not thread-safe. The destructor ends and
// reaps it.
class JsonLineProcess {
 public:
  struct Options {
    std::string log_path;                // Standard error is appended to it; empty = it is this process's.
    std::vector<std::string> extra_env;  // As Subprocess::Options.
    std::vector<std::string> unset_env;
  };
  // `words`: the program, looked up in PATH, and its arguments. NotFound: no such program. PermissionDenied: the log
  // cannot be written. Internal.
  static absl::StatusOr<std::unique_ptr<JsonLineProcess>> Start(const std::vector<std::string>& words,
                                                                const Options& options);
  ~JsonLineProcess();
  JsonLineProcess(const JsonLineProcess&) = delete;
  JsonLineProcess& operator=(const JsonLineProcess&) = delete;

  // `give_up`: asked ten times a second while the answer is awaited; null: never. DeadlineExceeded: it has not answered
  // in time. Cancelled: give_up said so. Unavailable: it has ended. DataLoss: the answer is no JSON object. After an
  // error nothing more can be asked.
  absl::StatusOr<nlohmann::json> Ask(const nlohmann::json& request, absl::Duration timeout,
                                     const std::function<bool()>& give_up = {});

  // Ends its input, and waits for it to end by itself, for so long at most.
  void Finish(absl::Duration timeout);

 private:
  JsonLineProcess(pid_t pid, int fd, std::string name)
      : pid_(pid), fd_(fd), name_(std::move(name)), guard_(std::in_place, pid) {}
  // Whether it has ended, and been reaped, within so long.
  bool Reap(absl::Duration timeout);
  absl::Status Ended();

  const pid_t pid_;
  int fd_;  // A socket: its other end is the child's standard input and output. -1 = closed.
  const std::string name_;
  std::string buffer_;
  std::optional<int> exit_;            // Exit code, or 128 + signal, once it has been reaped.
  std::optional<ProcessGuard> guard_;  // Until then.
};

}  // namespace skein
