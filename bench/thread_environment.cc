// SPDX-License-Identifier: Apache-2.0
#include "bench/thread_environment.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/file.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

constexpr char kStartedOver[] = "SKEIN_BENCH_THREADS";
constexpr const char* kLibraryVariables[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"};

}  // namespace

absl::Status EnsureTorchThreads(uint32_t threads) {
  const std::string wanted = absl::StrCat(threads);
  const char* const now = std::getenv("OPENBLAS_NUM_THREADS");
  if ((now != nullptr && now == wanted) || std::getenv(kStartedOver) != nullptr) return absl::OkStatus();
  const auto command_line = ReadFile("/proc/self/cmdline");
  if (!command_line.ok()) return command_line.status();
  for (const char* name : kLibraryVariables) setenv(name, wanted.c_str(), 1);
  setenv(kStartedOver, wanted.c_str(), 1);
  std::vector<std::string> arguments = absl::StrSplit(*command_line, '\0');
  arguments.pop_back();  // Each argument ends with a zero byte.
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv("/proc/self/exe", argv.data());
  return absl::InternalError(absl::StrCat("cannot start over: ", SystemError(errno, "skein-bench").message()));
}

void LetChildrenChooseThreads() {
  for (const char* name : kLibraryVariables) {
    const char* const value = std::getenv(name);
    if (value != nullptr && std::string(value) == "1") unsetenv(name);
  }
}

}  // namespace skein
