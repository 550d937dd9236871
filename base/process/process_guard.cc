// SPDX-License-Identifier: Apache-2.0
#include "base/process/process_guard.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/subprocess.h"

namespace skein {
namespace {

// A line on descriptor 3 ends it; the end of that input means that the guarding process has gone.
constexpr char kGuardScript[] = "read -r line <&3 || { sleep 1; kill -KILL \"-$1\"; }";

}  // namespace

ProcessGuard::ProcessGuard(pid_t group) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  input_ = ends[0];
  Subprocess::Options options;
  options.argv = {"/bin/sh", "-c", kGuardScript, "sh", absl::StrCat(group)};
  options.output_path = "/dev/null";
  options.inherited_fds = {ends[1]};
  auto shell = Subprocess::Spawn(options);
  close(ends[1]);
  if (shell.ok()) shell_ = *std::move(shell);
}

ProcessGuard::~ProcessGuard() {
  if (input_ < 0) return;
  (void)!send(input_, "\n", 1, MSG_NOSIGNAL);
  close(input_);
  if (shell_ != nullptr) shell_->Wait(absl::InfiniteDuration());
}

}  // namespace skein
