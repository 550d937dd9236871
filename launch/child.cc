// SPDX-License-Identifier: Apache-2.0
#include "launch/child.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/process/control_group.h"
#include "base/process/exit_code.h"
#include "launch/visible_gpus.h"

namespace skein {
namespace {

constexpr size_t kTailBytes = 8192;
constexpr size_t kTailLines = 10;
// Variables by which torchrun and Slurm give a process its rank.
constexpr const char* kRankVariables[] = {"RANK",         "WORLD_SIZE",       "LOCAL_RANK",          "LOCAL_WORLD_SIZE",
                                          "GROUP_RANK",   "GROUP_WORLD_SIZE", "ROLE_RANK",           "ROLE_WORLD_SIZE",
                                          "MASTER_ADDR",  "MASTER_PORT",      "SLURM_PROCID",        "SLURM_NTASKS",
                                          "SLURM_NPROCS", "SLURM_LOCALID",    "SLURM_STEP_NUM_TASKS"};

uint64_t FileSize(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

// The end of a log.
struct Tail {
  std::vector<std::string> lines;  // Not empty ones.
  bool torn = false;               // The last one does not end, as on a full disk.
};

// Of the file from byte `start` on.
Tail ReadTail(const std::string& path, uint64_t start) {
  const uint64_t size = FileSize(path);
  if (size > kTailBytes) start = std::max<uint64_t>(start, size - kTailBytes);
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(start));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  if (lines.size() > kTailLines) lines.erase(lines.begin(), lines.end() - kTailLines);
  return {.lines = std::move(lines), .torn = !text.empty() && text.back() != '\n'};
}

// Bytes of memory of each GPU that the child will see; empty where it has no share of one.
std::vector<uint64_t> GpuMemoryOf(const Child::Options& options) {
  const double gpus = options.share.gpus.value_or(0);
  if (gpus <= 0 || gpus >= 1) return {};
  constexpr absl::string_view kVisible = "CUDA_VISIBLE_DEVICES=";
  std::optional<std::string> visible;
  if (const char* inherited = std::getenv("CUDA_VISIBLE_DEVICES"); inherited != nullptr) visible = inherited;
  for (const std::string& variable : options.extra_env) {
    if (absl::StartsWith(variable, kVisible)) visible = variable.substr(kVisible.size());
  }
  return VisibleGpuMemory(visible);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Child>> Child::Start(const Options& options) {
  std::unique_ptr<Child> child(new Child);
  child->options_ = options;
  child->log_start_ = FileSize(options.log_path);
  Subprocess::Options spawn;
  spawn.argv = {options.program};
  spawn.argv.insert(spawn.argv.end(), options.arguments.begin(), options.arguments.end());
  spawn.output_path = options.log_path;
  spawn.capture_stdout = options.capture_stdout;
  spawn.unset_env = {std::begin(kRankVariables), std::end(kRankVariables)};
  spawn.extra_env = ThreadEnvironment(options.torch_threads);
  spawn.extra_env.insert(spawn.extra_env.end(), options.extra_env.begin(), options.extra_env.end());
  const bool held = options.enforcer != nullptr && !options.share.empty();
  if (held) {
    const std::vector<std::string> gpus = GpuEnvironment(options.share, GpuMemoryOf(options));
    spawn.extra_env.insert(spawn.extra_env.end(), gpus.begin(), gpus.end());
    spawn.extra_env.push_back(absl::StrCat(kShareHeldVariable, "=1"));
    if (options.share.cpus || options.share.memory_bytes) spawn.unset_env.emplace_back(kControlGroupVariable);
  }
  auto process = Subprocess::Spawn(spawn);
  if (!process.ok()) return process.status();
  child->process_ = *std::move(process);
  if (held) {
    auto share = options.enforcer->Hold(child->process_->pid(), options.name, options.share);
    if (!share.ok()) return share.status();
    child->held_ = *std::move(share);
  }
  return child;
}

int Child::Stop(absl::Duration timeout) {
  if (const auto code = process_->Poll()) return *code;
  process_->Signal(SIGTERM);
  if (const auto code = process_->Wait(timeout)) return *code;
  process_->Signal(SIGKILL);
  return process_->Wait(absl::InfiniteDuration()).value_or(128 + SIGKILL);
}

std::string Child::DescribeExit(int code) const {
  const auto [lines, torn] = ReadTail(options_.log_path, log_start_);
  const std::string how = code > 128
                              ? absl::StrCat("was ended by signal ", code - 128, " (", strsignal(code - 128), ")")
                              : absl::StrCat("ended with code ", code);
  const std::string where = absl::StrCat("log: ", options_.log_path);
  const std::string over = held_ == nullptr ? "" : held_->DescribeKill();
  if (!over.empty()) {
    const char* const who = code == 128 + SIGKILL ? " was killed: " : ": one of its processes was killed: ";
    return absl::StrCat(options_.name, who, over, " (", where, ")");
  }
  if (lines.empty()) return absl::StrCat(options_.name, " ", how, " without a message (", where, ")");
  const bool orderly = code >= 64 && code <= 78;  // Our programs exit so after one line of error text.
  if (orderly && torn) {
    return absl::StrCat(options_.name, " ", how, code == kExitIo ? ": the disk is full, or may not be written; " : "; ",
                        "its log breaks off before the reason (", where, ")");
  }
  if (orderly) return absl::StrCat(options_.name, " ", how, ": ", lines.back(), " (", where, ")");
  return absl::StrCat(options_.name, " ", how, "; the last lines it wrote (", where, "):\n  ",
                      absl::StrJoin(lines, "\n  "));
}

absl::Status Child::ExitStatus(int code) const {
  const std::string text = DescribeExit(code);
  switch (code) {
    case kExitUsage:
      return absl::InvalidArgumentError(text);
    case kExitData:
      return absl::DataLossError(text);
    case kExitUnavailable:
      return absl::UnavailableError(text);
    case kExitIo:
      return absl::ResourceExhaustedError(text);
    case kExitTryAgain:
      return absl::AbortedError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::StatusOr<std::string> FindProgram(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  if (access(path.c_str(), X_OK) == 0) return path;
  return absl::UnavailableError(
      absl::StrCat(path, ": no such program; it belongs next to skein, build it with `make build`"));
}

std::vector<std::string> ThreadEnvironment(int torch_threads) {
  const std::string threads = absl::StrCat(torch_threads);
  std::vector<std::string> environment;
  // A thread of OpenMP's that waits actively has a core, and the update's own threads need it.
  for (const auto& [name, value] : {std::pair<const char*, std::string>("OPENBLAS_NUM_THREADS", threads),
                                    {"OMP_NUM_THREADS", threads},
                                    {"OMP_WAIT_POLICY", "passive"}}) {
    if (std::getenv(name) == nullptr) environment.push_back(absl::StrCat(name, "=", value));
  }
  return environment;
}

}  // namespace skein
