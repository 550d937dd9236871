// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace skein {

// A child process that answers each JSON object on a line of its standard input with one on its standard output. It
// ends when its input does, so also with this process. Not thread-safe. The destructor ends and reaps it.
class JsonLineProcess {
 public:
  // `words`: the program, looked up in PATH, and its arguments. Standard error is appended to `log_path`. NotFound: no
  // such program. PermissionDenied: the log cannot be written. Internal.
  static absl::StatusOr<std::unique_ptr<JsonLineProcess>> Start(const std::vector<std::string>& words,
                                                                const std::string& log_path);
  ~JsonLineProcess();
  JsonLineProcess(const JsonLineProcess&) = delete;
  JsonLineProcess& operator=(const JsonLineProcess&) = delete;

  // Unavailable: it has ended, or has not answered in time. DataLoss: the answer is no JSON object.
  absl::StatusOr<nlohmann::json> Ask(const nlohmann::json& request, absl::Duration timeout);

 private:
  JsonLineProcess(pid_t pid, int fd, std::string name) : pid_(pid), fd_(fd), name_(std::move(name)) {}

  const pid_t pid_;
  const int fd_;  // A socket: its other end is the child's standard input and output.
  const std::string name_;
  std::string buffer_;
};

}  // namespace skein
