// SPDX-License-Identifier: Apache-2.0
#include "base/process/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/process/clock.h"
#include "base/process/no_links.h"

namespace skein {
namespace {

// File actions and attributes of one posix_spawn, and the descriptors that only it needs.
struct SpawnSetup {
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    for (const int fd : to_close) close(fd);
  }

  // Default signal handling, and a process group of its own: a terminal's Ctrl-C reaches the parent only.
  void ResetSignals() {
    sigset_t none;
    sigemptyset(&none);
    sigset_t to_default;
    sigemptyset(&to_default);
    for (const int number : {SIGTERM, SIGINT, SIGPIPE, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&to_default, number);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &to_default);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  std::vector<int> to_close;
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& one : strings) result.push_back(const_cast<char*>(one.c_str()));
  result.push_back(nullptr);
  return result;
}

// Whether `fd` became readable (or ended) before MonotonicNow() is `deadline`.
bool WaitReadable(int fd, absl::Duration deadline) {
  while (true) {
    const absl::Duration left = deadline - MonotonicNow();
    int milliseconds = -1;
    if (deadline != absl::InfiniteDuration()) {
      const int64_t up = absl::ToInt64Milliseconds(left + absl::Milliseconds(1) - absl::Nanoseconds(1));
      milliseconds = static_cast<int>(std::clamp<int64_t>(up, 0, INT_MAX));
    }
    pollfd source = {fd, POLLIN, 0};
    const int ready = poll(&source, 1, milliseconds);
    if (ready > 0) return true;
    if (ready == 0 && MonotonicNow() >= deadline) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

absl::Status Refused(const std::string& what, int error) {
  return absl::InternalError(absl::StrCat(what, ": ", strerror(error)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Subprocess>> Subprocess::Spawn(const Options& options) {
  if (options.argv.empty()) return absl::InternalError("cannot start a program: no name given");
  const std::string& program = options.argv[0];
  std::unique_ptr<Subprocess> child(new Subprocess);
  SpawnSetup setup;
  setup.ResetSignals();
  posix_spawn_file_actions_addopen(&setup.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (!options.output_path.empty()) {
    const int fd = open(options.output_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0 && errno == ELOOP) return LinkError(options.output_path);
    if (fd < 0) return Refused(absl::StrCat("cannot write ", options.output_path), errno);
    setup.to_close.push_back(fd);
    posix_spawn_file_actions_adddup2(&setup.actions, fd, STDERR_FILENO);
    if (!options.capture_stdout) posix_spawn_file_actions_adddup2(&setup.actions, fd, STDOUT_FILENO);
  }
  if (options.capture_stdout) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return Refused("cannot make a pipe", errno);
    child->stdout_fd_ = ends[0];
    setup.to_close.push_back(ends[1]);
    posix_spawn_file_actions_adddup2(&setup.actions, ends[1], STDOUT_FILENO);
  }
  if (options.stdout_to_stderr) {
    posix_spawn_file_actions_adddup2(&setup.actions, STDERR_FILENO, STDOUT_FILENO);
  }
  int first_closed = STDERR_FILENO + 1;
  for (const int fd : options.inherited_fds) {
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, 64);  // Where no other is in the way.
    if (high < 0) return Refused("cannot pass a descriptor on", errno);
    setup.to_close.push_back(high);
    posix_spawn_file_actions_adddup2(&setup.actions, high, first_closed++);
  }
  posix_spawn_file_actions_addclosefrom_np(&setup.actions, first_closed);

  std::vector<std::string> extra = options.extra_env;
  extra.push_back(absl::StrCat("SKEIN_PARENT_PID=", getpid()));
  const std::vector<std::string> environment = ChildEnvironment(options.unset_env, extra);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &setup.actions, &setup.attributes, Pointers(options.argv).data(),
                                Pointers(environment).data());
  if (error == ENOENT || error == ENOTDIR) {
    return absl::NotFoundError(absl::StrCat("cannot start ", program, ": no such program"));
  }
  if (error == EACCES) {
    return absl::NotFoundError(
        absl::StrCat("cannot start ", program, ": it may not be executed (chmod +x), or it is a folder"));
  }
  if (error != 0) return Refused(absl::StrCat("cannot start ", program), error);
  child->pid_ = pid;
  if (options.foreign) child->guard_.emplace(pid);
  child->pid_fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (child->pid_fd_ < 0) return Refused(absl::StrCat("cannot watch ", program), errno);
  return child;
}

Subprocess::~Subprocess() {
  if (pid_ > 0 && !Poll().has_value()) {
    kill(-pid_, SIGKILL);  // Its whole process group.
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  }
  if (pid_fd_ >= 0) close(pid_fd_);
  if (stdout_fd_ >= 0) close(stdout_fd_);
}

std::optional<int> Subprocess::Poll() {
  int status = 0;
  siginfo_t ended = {};
  if (guard_.has_value() && waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      ended.si_pid == pid_) {
    // What it has started and not ended; the group has its number until it is reaped. Python's multiprocessing clears
    // away shared memory a moment after its end.
    absl::SleepFor(absl::Milliseconds(20));
    kill(-pid_, SIGKILL);
  }
  if (!exit_.has_value() && waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    guard_.reset();
  }
  return exit_;
}

std::optional<int> Subprocess::Wait(absl::Duration timeout) {
  if (!exit_.has_value()) WaitReadable(pid_fd_, MonotonicNow() + timeout);
  return Poll();
}

void Subprocess::Signal(int signal_number) {
  if (!Poll().has_value()) kill(pid_, signal_number);
}

absl::StatusOr<std::string> Subprocess::ReadLine(absl::Duration timeout) {
  const absl::Duration deadline = MonotonicNow() + timeout;
  while (true) {
    const size_t newline = buffer_.find('\n');
    if (newline != std::string::npos) {
      std::string line = buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      return line;
    }
    if (stdout_fd_ < 0) {
      if (!buffer_.empty()) return std::exchange(buffer_, "");  // A last line without its newline.
      return absl::OutOfRangeError("the program has closed its output");
    }
    if (!WaitReadable(stdout_fd_, deadline)) {
      return absl::DeadlineExceededError(
          absl::StrCat("no line of output within ", absl::FormatDuration(absl::Ceil(timeout, absl::Milliseconds(1)))));
    }
    char chunk[4096];
    const ssize_t got = read(stdout_fd_, chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) {
      buffer_.append(chunk, got);
    } else {
      close(std::exchange(stdout_fd_, -1));
    }
  }
}

absl::StatusOr<std::vector<std::string>> Subprocess::ReadLines(absl::Duration timeout,
                                                               const std::function<bool()>& given_up) {
  constexpr absl::Duration kAskAgain = absl::Milliseconds(20);
  const absl::Duration deadline = MonotonicNow() + timeout;
  std::vector<std::string> lines;
  while (true) {
    auto line = ReadLine(std::min(kAskAgain, deadline - MonotonicNow()));
    if (absl::IsOutOfRange(line.status())) return lines;
    if (line.ok()) {
      lines.push_back(*std::move(line));
    } else if (!absl::IsDeadlineExceeded(line.status())) {
      return line.status();
    } else if (given_up()) {
      return absl::CancelledError("nobody waits for the output any longer");
    } else if (MonotonicNow() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "its output has not ended within ", absl::FormatDuration(absl::Ceil(timeout, absl::Milliseconds(1)))));
    }
  }
}

std::vector<std::string> ChildEnvironment(const std::vector<std::string>& unset,
                                          const std::vector<std::string>& extra) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string inherited = *entry;
    const std::string name = inherited.substr(0, inherited.find('=') + 1);
    const bool replaced =
        std::any_of(extra.begin(), extra.end(), [&](const std::string& one) { return absl::StartsWith(one, name); });
    const bool left_out = std::count(unset.begin(), unset.end(), name.substr(0, name.size() - 1)) > 0;
    if (!replaced && !left_out) result.push_back(inherited);
  }
  result.insert(result.end(), extra.begin(), extra.end());
  return result;
}

std::string PythonProgram(const std::string& setting) {
  constexpr char kDefault[] = "python3";
  if (!setting.empty() && setting != kDefault) return setting;
  const char* const chosen = std::getenv("SKEIN_PYTHON");
  return chosen == nullptr || *chosen == '\0' ? kDefault : chosen;
}

std::string PythonPathVariable() {
  const std::string programs = ProgramFolder(), installed = programs + "/../share/skein/python";
  const char* const own = std::getenv("PYTHONPATH");
  return absl::StrCat("PYTHONPATH=", own == nullptr ? "" : own, own == nullptr || *own == '\0' ? "" : ":",
                      access((installed + "/skein_env").c_str(), X_OK) == 0 ? installed : programs + "/python");
}

std::string ProgramFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

}  // namespace skein
