// SPDX-License-Identifier: Apache-2.0
#include "base/process/json_line_process.h"

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
#include "absl/time/clock.h"
#include "base/process/clock.h"
#include "base/process/no_links.h"
#include "base/process/subprocess.h"
#include "base/process/system_error.h"

namespace skein {

namespace {

// How often a wait asks whether to go on.
constexpr absl::Duration kAskPeriod = absl::Milliseconds(100);
// A process closes its socket a moment before it has ended.
constexpr absl::Duration kEnding = absl::Seconds(1);

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& one : strings) pointers.push_back(const_cast<char*>(one.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JsonLineProcess>> JsonLineProcess::Start(const std::vector<std::string>& words,
                                                                        const Options& options) {
  int log = -1;
  if (const std::string& path = options.log_path; !path.empty()) {
    log = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (log < 0 && errno == ELOOP) return LinkError(path);
    if (log < 0) return SystemError(errno, absl::StrCat("cannot write ", path));
  }
  const absl::Cleanup close_log = [log] {
    if (log >= 0) close(log);
  };
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return SystemError(errno, "cannot make a socket");
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (log >= 0) posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);  // A terminal's Ctrl-C reaches the parent only.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const std::vector<std::string> environment = ChildEnvironment(options.unset_env, options.extra_env);
  pid_t pid = -1;
  const int error =
      posix_spawnp(&pid, words[0].c_str(), &actions, &attributes, Pointers(words).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
  if (error == 0) return std::unique_ptr<JsonLineProcess>(new JsonLineProcess(pid, ends[0], words[0]));
  close(ends[0]);
  if (error == ENOENT) return absl::NotFoundError(absl::StrCat(words[0], ": no such program"));
  return absl::InternalError(absl::StrCat("cannot start ", words[0], ": ", strerror(error)));
}

JsonLineProcess::~JsonLineProcess() {
  if (fd_ >= 0) close(fd_);
  if (Reap(absl::ZeroDuration())) return;
  kill(-pid_, SIGKILL);  // Its whole process group.
  Reap(absl::InfiniteDuration());
}

void JsonLineProcess::Finish(absl::Duration timeout) {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  Reap(timeout);
}

bool JsonLineProcess::Reap(absl::Duration timeout) {
  const absl::Duration until = MonotonicNow() + timeout;
  while (!exit_) {
    int status = 0;
    const pid_t reaped = waitpid(pid_, &status, timeout == absl::InfiniteDuration() ? 0 : WNOHANG);
    if (reaped == pid_) {
      exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      guard_.reset();
    } else if (reaped < 0 && errno != EINTR) {
      exit_ = -1;  // Somebody else has reaped it.
    } else if (reaped == 0) {
      if (MonotonicNow() >= until) return false;
      absl::SleepFor(absl::Milliseconds(2));
    }
  }
  return true;
}

absl::Status JsonLineProcess::Ended() {
  std::string how;
  if (Reap(kEnding)) {
    how = *exit_ > 128 ? absl::StrCat(", by signal ", *exit_ - 128, " (", strsignal(*exit_ - 128), ")")
                       : absl::StrCat(", with exit code ", *exit_);
  }
  return absl::UnavailableError(absl::StrCat(name_, " has ended", how));
}

absl::StatusOr<nlohmann::json> JsonLineProcess::Ask(const nlohmann::json& request, absl::Duration timeout,
                                                    const std::function<bool()>& give_up) {
  const absl::Duration deadline = MonotonicNow() + timeout;
  const std::string line = request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  absl::string_view left = line;
  while (!left.empty()) {
    const ssize_t sent = send(fd_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Ended();
    left.remove_prefix(static_cast<size_t>(sent));
  }
  size_t end = buffer_.find('\n');
  while (end == std::string::npos) {
    const absl::Duration rest = std::max(deadline - MonotonicNow(), absl::ZeroDuration());
    const absl::Duration wait = give_up ? std::min(rest, kAskPeriod) : rest;
    pollfd readable = {fd_, POLLIN, 0};
    const int ready = poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(wait)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && wait == rest) {
      return absl::DeadlineExceededError(absl::StrCat(name_, " has not answered for ", absl::FormatDuration(timeout)));
    }
    if (ready == 0) {
      if (give_up()) return absl::CancelledError(absl::StrCat(name_, " was not waited for"));
      continue;
    }
    char bytes[4096];
    const ssize_t got = read(fd_, bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Ended();
    buffer_.append(bytes, static_cast<size_t>(got));
    end = buffer_.find('\n');
  }
  auto answer = nlohmann::json::parse(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
  buffer_.erase(0, end + 1);
  if (!answer.is_object()) return absl::DataLossError(absl::StrCat(name_, ": the answer is no JSON object"));
  return answer;
}

}  // namespace skein
