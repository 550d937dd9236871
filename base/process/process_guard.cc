// SPDX-License-Identifier: Apache-2.0
#include "base/process/process_guard.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace skein {
namespace {

// A line tells it to go; the end of its input, that nobody is there.
constexpr char kGuardScript[] = "read -r line || { sleep 1; kill -KILL \"-$1\"; }";

}  // namespace

ProcessGuard::ProcessGuard(pid_t group) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  fd_ = ends[0];
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_setpgroup(&attributes, 0);  // What is sent to this process's group does not end it.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::string words[] = {"sh", "-c", kGuardScript, "sh", std::to_string(group)};
  char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(),
                             words[3].data(), words[4].data(), nullptr};
  if (posix_spawn(&pid_, "/bin/sh", &actions, &attributes, arguments, environ) != 0) pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[1]);
}

ProcessGuard::~ProcessGuard() {
  if (fd_ < 0) return;
  (void)!send(fd_, "\n", 1, MSG_NOSIGNAL);
  close(fd_);
  while (pid_ > 0 && waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace skein
