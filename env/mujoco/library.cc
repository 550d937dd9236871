// SPDX-License-Identifier: Apache-2.0
#include "env/mujoco/library.h"

#include <mujoco/mujoco.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace skein {
namespace {

constexpr int64_t kMaxPrinted = 5;

ABSL_CONST_INIT absl::Mutex mu(absl::kConstInit);
int64_t warning_count ABSL_GUARDED_BY(mu) = 0;
char last_warning[256] ABSL_GUARDED_BY(mu) = "";

// Where this thread goes on after an error, if it is within MujocoErrorOf, and that error.
thread_local std::jmp_buf* on_error = nullptr;
thread_local char caught_error[256] = "";

thread_local HeldMujocoWarnings* held_warnings = nullptr;

void OnWarning(const char* message) {
  if (held_warnings != nullptr) {
    held_warnings->Hold(message);
    return;
  }
  absl::MutexLock lock(&mu);
  ++warning_count;
  std::snprintf(last_warning, sizeof(last_warning), "%s", message);
  if (warning_count <= kMaxPrinted) std::fprintf(stderr, "MuJoCo warning: %s\n", message);
}

void OnError(const char* message) {
  if (on_error != nullptr) {
    std::snprintf(caught_error, sizeof(caught_error), "%s", message);
    std::longjmp(*on_error, 1);
  }
  std::fprintf(stderr, "MuJoCo error: %s\n", message);
  std::abort();
}

}  // namespace

std::string MujocoLibraryVersion() { return mj_versionString(); }

void InstallMujocoHandlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    mju_user_warning = OnWarning;
    mju_user_error = OnError;
  });
}

HeldMujocoWarnings::HeldMujocoWarnings() { held_warnings = this; }
HeldMujocoWarnings::~HeldMujocoWarnings() { held_warnings = nullptr; }

std::string MujocoErrorOf(absl::FunctionRef<void()> physics) {
  std::jmp_buf here;
  caught_error[0] = '\0';
  on_error = &here;
  if (setjmp(here) == 0) physics();
  on_error = nullptr;
  return caught_error;
}

int64_t MujocoWarningCount() {
  absl::MutexLock lock(&mu);
  return warning_count;
}

std::string LastMujocoWarning() {
  absl::MutexLock lock(&mu);
  return last_warning;
}

}  // namespace skein
