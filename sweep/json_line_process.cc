// SPDX-License-Identifier: Apache-2.0
#include "sweep/json_line_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/process/clock.h"
#include "base/process/system_error.h"

namespace skein {

absl::StatusOr<std::unique_ptr<JsonLineProcess>> JsonLineProcess::Start(const std::vector<std::string>& words,
                                                                        const std::string& log_path) {
  const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (log < 0) return SystemError(errno, absl::StrCat("cannot write ", log_path));
  const absl::Cleanup close_log = [log] { close(log); };
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return SystemError(errno, "cannot make a socket");
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);  // A terminal's Ctrl-C reaches the parent only.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, words[0].c_str(), &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error == 0) return std::unique_ptr<JsonLineProcess>(new JsonLineProcess(pid, ends[0], words[0]));
  close(ends[0]);
  if (error == ENOENT) return absl::NotFoundError(absl::StrCat(words[0], ": no such program"));
  return absl::InternalError(absl::StrCat("cannot start ", words[0], ": ", strerror(error)));
}

JsonLineProcess::~JsonLineProcess() {
  close(fd_);
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

absl::StatusOr<nlohmann::json> JsonLineProcess::Ask(const nlohmann::json& request, absl::Duration timeout) {
  const absl::Duration give_up = MonotonicNow() + timeout;
  const std::string line = request.dump() + "\n";
  absl::string_view left = line;
  while (!left.empty()) {
    const ssize_t sent = send(fd_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return absl::UnavailableError(absl::StrCat(name_, " has ended"));
    left.remove_prefix(static_cast<size_t>(sent));
  }
  size_t end = buffer_.find('\n');
  while (end == std::string::npos) {
    const absl::Duration rest = std::max(give_up - MonotonicNow(), absl::ZeroDuration());
    pollfd readable = {fd_, POLLIN, 0};
    const int ready = poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(rest)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      return absl::UnavailableError(absl::StrCat(name_, " has not answered for ", absl::FormatDuration(timeout)));
    }
    char bytes[4096];
    const ssize_t got = read(fd_, bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::UnavailableError(absl::StrCat(name_, " has ended"));
    buffer_.append(bytes, static_cast<size_t>(got));
    end = buffer_.find('\n');
  }
  auto answer = nlohmann::json::parse(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
  buffer_.erase(0, end + 1);
  if (!answer.is_object()) return absl::DataLossError(absl::StrCat(name_, ": the answer is no JSON object"));
  return answer;
}

}  // namespace skein
