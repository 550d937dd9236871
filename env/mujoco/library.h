// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"

// Version and message handlers of the linked MuJoCo library, without its headers. Thread-safe.
namespace skein {

// Version of the linked library, e.g. "2.2.2".
std::string MujocoLibraryVersion();

// Replaces MuJoCo's default handlers of warnings and errors, which write MUJOCO_LOG.TXT into the working directory.
// A warning is counted, and the first few are printed to stderr. An error, from which MuJoCo cannot return, is printed
// and aborts the process. Only the first call has an effect; it comes before any model is compiled.
void InstallMujocoHandlers();

// Number of warnings since the process began; if it is not 0, the physics cannot be trusted. Text of the newest
// warning, or "".
int64_t MujocoWarningCount();
std::string LastMujocoWarning();

// While it lives, warnings of this thread are kept here in place of being counted and printed. One at a time in a
// thread.
class HeldMujocoWarnings {
 public:
  HeldMujocoWarnings();
  ~HeldMujocoWarnings();
  HeldMujocoWarnings(const HeldMujocoWarnings&) = delete;
  HeldMujocoWarnings& operator=(const HeldMujocoWarnings&) = delete;

  // The newest one, or "".
  const std::string& newest() const { return newest_; }
  void Hold(const char* message) { newest_ = message; }

 private:
  std::string newest_;
};

// Runs `physics` on this thread; returns the error of MuJoCo that ended it early, or "". After an error only
// mj_resetData makes mjData usable again. REQUIRES: InstallMujocoHandlers was called; `physics` only calls MuJoCo's
// functions of C, and its frame has nothing to destroy.
std::string MujocoErrorOf(absl::FunctionRef<void()> physics);

}  // namespace skein
