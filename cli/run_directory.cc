// SPDX-License-Identifier: Apache-2.0
#include "cli/run_directory.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/config/algorithm_rules.h"
#include "base/config/config.h"
#include "base/process/clock.h"
#include "base/process/file.h"
#include "base/process/no_links.h"
#include "env/mujoco/user_model.h"
#include "google/protobuf/text_format.h"
#include "xxhash.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr char kOldSuffix[] = ".old-";
constexpr absl::Duration kOrphanGrace = absl::Seconds(10);

absl::Status IoError(const std::string& what, const std::string& path, int error) {
  const std::string message = absl::StrCat(what, " ", path, ": ", std::generic_category().message(error));
  if (error == ENOSPC || error == EDQUOT) return absl::ResourceExhaustedError(message);
  return absl::PermissionDeniedError(message);
}

// The run's folder itself may be a symbolic link.
absl::Status MakeRunFolder(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return absl::OkStatus();
  const absl::Status made = MakeFolder(path);
  if (made.ok() || absl::IsResourceExhausted(made)) return made;
  return absl::PermissionDeniedError(made.message());
}

// What a run's processes write in its folder must be there: a link would lead them elsewhere, or be replaced. (Logs of
// processes and TensorBoard's files have names of their own, and are opened without following links.)
absl::Status CheckNoLinks(const std::string& folder) {
  for (const char* name : {"checkpoints", "config.yaml", "coordinator", "coordinator/lock", "coordinator/log",
                           "eval.json", "log", "log.jsonl", "metrics.jsonl"}) {
    const std::string path = absl::StrCat(folder, "/", name);
    std::error_code ignored;
    if (fs::is_symlink(fs::symlink_status(path, ignored))) {
      return absl::PermissionDeniedError(absl::StrCat(
          path, " is a symbolic link, and could lead anywhere; remove it (the run's folder itself may be one)"));
    }
  }
  return absl::OkStatus();
}

// The pids in a lock file: its owner's, then those of noted children.
std::vector<pid_t> PidsIn(int fd) {
  char text[4096] = {};
  const ssize_t size = pread(fd, text, sizeof(text) - 1, 0);
  std::vector<pid_t> pids;
  for (absl::string_view word : absl::StrSplit(absl::string_view(text, std::max<ssize_t>(size, 0)), '\n')) {
    int pid = 0;
    if (absl::SimpleAtoi(word, &pid) && pid > 0) pids.push_back(pid);
  }
  return pids;
}

// Whether the process is there and one of ours; its number may have gone to another process.
bool IsSkeinProcess(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/comm"));
  std::string name;
  return std::getline(file, name) && absl::StartsWith(name, "skein");
}

bool IsStopped(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string stat;
  std::getline(file, stat);
  // "PID (NAME) STATE ...", where a name may have any character.
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat.substr(name_end + 2, 1) == "T";
}

// Those of `pids` that still live, and what to do.
absl::Status StillInUse(const std::string& folder, const std::vector<pid_t>& pids) {
  std::vector<pid_t> living;
  std::copy_if(pids.begin(), pids.end(), std::back_inserter(living), IsSkeinProcess);
  const bool stopped = std::any_of(living.begin(), living.end(), IsStopped);
  return absl::UnavailableError(absl::StrCat(
      folder, " is still in use by ", living.size() == 1 ? "process " : "processes ", absl::StrJoin(living, ", "),
      ", left behind by a skein that was killed", stopped ? " and stopped (SIGSTOP): `kill -CONT " : "; `kill ",
      absl::StrJoin(living, " "), stopped ? "` lets them end, `kill -9 " : "` ends them, `kill -9 ",
      absl::StrJoin(living, " "), "` at once"));
}

absl::Status WaitForOrphans(const std::string& folder, const std::vector<pid_t>& pids) {
  const absl::Duration give_up = MonotonicNow() + kOrphanGrace;
  for (pid_t pid : pids) {
    const int pid_fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pid_fd < 0) continue;  // It has ended.
    const absl::Cleanup close_pid_fd = [pid_fd] { close(pid_fd); };
    while (IsSkeinProcess(pid)) {
      const absl::Duration left = give_up - MonotonicNow();
      if (left <= absl::ZeroDuration()) return StillInUse(folder, pids);
      pollfd ended = {pid_fd, POLLIN, 0};
      if (poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) > 0) break;
    }
  }
  return absl::OkStatus();
}

// Takes the lock of `folder` and returns its descriptor.
absl::StatusOr<int> Lock(const std::string& folder) {
  const std::string path = folder + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (fd < 0 && errno == ELOOP) return absl::PermissionDeniedError(path + " is a symbolic link; remove it");
  if (fd < 0) return IoError("cannot open", path, errno);
  absl::Cleanup close_fd = [fd] { close(fd); };
  const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
  std::vector<pid_t> pids = PidsIn(fd);
  if (!locked) {
    return absl::UnavailableError(
        absl::StrCat(folder, " is in use by process ", pids.empty() ? 0 : pids[0], "; stop it or give another --name"));
  }
  // Deleted between open() and flock(): the lock of a file that has no name protects nothing.
  if (!IsFileAt(fd, path)) return Lock(folder);
  if (!pids.empty()) pids.erase(pids.begin());
  if (absl::Status status = WaitForOrphans(folder, pids); !status.ok()) return status;
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return IoError("cannot write", path, errno);
  }
  std::move(close_fd).Cancel();
  return fd;
}

// Renames `folder` to the first free <folder>.old-N.
absl::StatusOr<std::string> MoveAside(const std::string& folder) {
  for (int n = 1;; ++n) {
    const std::string target = absl::StrCat(folder, kOldSuffix, n);
    std::error_code error;
    if (fs::exists(fs::symlink_status(target, error))) continue;
    fs::rename(folder, target, error);
    if (error) return IoError("cannot move aside", folder, error.value());
    return target;
  }
}

// Without what FirstDifference() leaves out.
v1::RunConfig WhatIsLearned(v1::RunConfig config) {
  config.clear_total_steps();
  config.clear_callbacks();
  config.clear_checkpoint();
  config.clear_coordinator();
  config.clear_eval();
  // How long things may take, and how often they may fail.
  config.mutable_rollout()->clear_step_timeout_seconds();
  config.mutable_rollout()->clear_env_rebuilds();
  config.mutable_env()->mutable_external()->clear_start_timeout_seconds();
  config.mutable_env()->mutable_external()->clear_restarts();
  v1::LearnerConfig* const learner = config.mutable_learner();
  learner->clear_min_ranks();
  learner->clear_device();
  learner->clear_micro_batch_size();
  learner->clear_cudnn_benchmark();
  learner->clear_cuda_graph();
  learner->clear_prefetch_depth();
  learner->clear_bucket_mb();
  learner->clear_shortfall_seconds();
  learner->clear_collective_timeout_seconds();
  learner->clear_init_from();  // Read only where there is no checkpoint.
  learner->clear_init_optimizer();
  config.clear_logging();
  config.clear_resources();
  config.mutable_transport()->clear_trajectory_compression();
  config.mutable_transport()->clear_policy_compression();
  if (SearchesDirections(config)) {
    // These sizes follow from directions.num_dirs and dir_chunk, of which only the first changes results.
    config.mutable_directions()->clear_dir_chunk();
    config.mutable_rollout()->clear_num_envs();
    config.mutable_rollout()->clear_envs_per_runner();
    config.mutable_rollout()->clear_steps_per_iteration();
  }
  return config;
}

absl::Status CheckSameConfig(const std::string& folder, const v1::RunConfig& config) {
  const std::string path = folder + "/config.yaml";
  const std::string advice = "; start over with --resume never (the old folder is kept) or give another --name";
  const auto text = ReadFile(path, 1 << 20);
  if (!text.ok()) return absl::DataLossError(absl::StrCat(text.status().message(), advice));
  v1::RunConfig old_config;
  if (absl::Status status = MergeYaml(*text, path, &old_config); !status.ok()) {
    return absl::DataLossError(absl::StrCat(status.message(), advice));
  }
  ApplyDefaults(&old_config);
  // Runs that began before it was kept have none. With any, whoever continues the run takes the file as it is.
  const v1::MujocoConfig& mujoco = config.env().mujoco();
  if (mujoco.has_xml_digest() &&
      (!old_config.env().mujoco().has_xml_digest() || mujoco.xml_digest() == kAnyModelDigest)) {
    old_config.mutable_env()->mutable_mujoco()->set_xml_digest(mujoco.xml_digest());
  }
  if (const auto difference = FirstDifference(old_config, config)) {
    // The user may have set no such flag: say what decides the number.
    const v1::RolloutConfig& before = old_config.rollout();
    const bool search = SearchesDirections(old_config) || SearchesDirections(config);
    const std::string why =
        search || before.num_envs() == config.rollout().num_envs()
            ? ""
            : absl::StrCat("; --envs and --learners (of which each needs ", before.envs_per_runner(),
                           " environments) decide how many there are, ", before.num_envs(), " are enough for ",
                           before.num_envs() / std::max(1u, before.envs_per_runner()), " learners");
    return absl::FailedPreconditionError(
        absl::StrCat(folder, " has checkpoints of another configuration: ", *difference, why, advice));
  }
  return absl::OkStatus();
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// A leaf field's value as text, "[a, b]" for lists.
std::string FieldText(const Message& message, const FieldDescriptor* field) {
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  if (!field->is_repeated()) {
    printer.PrintFieldValueToString(message, field, -1, &text);
    return text;
  }
  std::string list = "[";
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    printer.PrintFieldValueToString(message, field, i, &text);
    absl::StrAppend(&list, i == 0 ? "" : ", ", text);
  }
  return list + "]";
}

std::optional<std::string> DifferenceWithin(const Message& a, const Message& b, const std::string& prefix) {
  for (int i = 0; i < a.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = a.GetDescriptor()->field(i);
    const std::string name = prefix + std::string(field->name());
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      auto difference = DifferenceWithin(a.GetReflection()->GetMessage(a, field),
                                         b.GetReflection()->GetMessage(b, field), name + ".");
      if (difference) return difference;
      continue;
    }
    const std::string old_text = FieldText(a, field), new_text = FieldText(b, field);
    if (old_text != new_text) return absl::StrCat(name, ": ", old_text, " -> ", new_text);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<RunDirectory> RunDirectory::Open(const std::string& runs_dir, const v1::RunConfig& config,
                                                ResumeMode resume) {
  RunDirectory directory;
  directory.path_ = std::string(absl::StripSuffix(runs_dir, "/")) + "/" + config.name();
  const std::string& path = directory.path_;
  std::error_code ignored;
  const bool existed = fs::exists(path, ignored);
  if (resume == ResumeMode::kMust && !FindNewestCheckpoint(path)) {
    return absl::NotFoundError(absl::StrCat(path, "/checkpoints: no complete checkpoint to resume from"));
  }
  if (absl::Status status = MakeRunFolder(path); !status.ok()) return status;
  auto lock = Lock(path);
  if (!lock.ok()) return lock.status();
  directory.lock_fd_ = *lock;

  if (resume == ResumeMode::kNever && existed) {
    auto moved = MoveAside(path);
    if (!moved.ok()) return moved.status();
    directory.moved_to_ = *moved;
    if (absl::Status status = MakeRunFolder(path); !status.ok()) return status;
    lock = Lock(path);
    if (!lock.ok()) return lock.status();
    close(std::exchange(directory.lock_fd_, *lock));
  } else if (absl::Status status = CheckNoLinks(path); !status.ok()) {
    return status;
  } else if (FindNewestCheckpoint(path)) {
    // Without a checkpoint there is nothing that a new configuration could contradict.
    if (absl::Status status = CheckSameConfig(path, config); !status.ok()) return status;
  }
  if (absl::Status status = MakeFolder(path + "/log"); !status.ok()) return status;
  if (absl::Status status = WriteFileAtomically(directory.config_path(), ToYaml(config)); !status.ok()) return status;
  return directory;
}

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      moved_to_(std::move(other.moved_to_)),
      lock_fd_(std::exchange(other.lock_fd_, -1)) {}

RunDirectory& RunDirectory::operator=(RunDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(moved_to_, other.moved_to_);
  std::swap(lock_fd_, other.lock_fd_);
  return *this;
}

RunDirectory::~RunDirectory() {
  if (lock_fd_ >= 0) close(lock_fd_);
}

RunDirectory::OldCopies RunDirectory::FindOldCopies() const {
  OldCopies copies;
  const fs::path path(path_);
  const std::string prefix = path.filename().string() + kOldSuffix;
  std::error_code error;
  for (fs::directory_iterator it(path.parent_path(), error), end; !error && it != end; it.increment(error)) {
    if (!absl::StartsWith(it->path().filename().string(), prefix)) continue;
    ++copies.count;
    std::error_code ignored;
    for (fs::recursive_directory_iterator file(it->path(), ignored), last; !ignored && file != last;
         file.increment(ignored)) {
      std::error_code no_size;
      const uint64_t bytes = file->is_regular_file(no_size) ? file->file_size(no_size) : 0;
      if (!no_size) copies.bytes += bytes;
    }
  }
  return copies;
}

absl::Status RunDirectory::CheckIsThere() const {
  if (IsFileAt(lock_fd_, path_ + "/lock")) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(path_, ": the run folder, or its lock, was deleted or replaced while the run was using it"));
}

absl::Status RunDirectory::NoteChild(pid_t pid) const {
  const std::string line = absl::StrCat(pid, "\n");
  const off_t end = lseek(lock_fd_, 0, SEEK_END);
  if (end < 0 || pwrite(lock_fd_, line.data(), line.size(), end) != static_cast<ssize_t>(line.size())) {
    return IoError("cannot write", path_ + "/lock", errno);
  }
  return absl::OkStatus();
}

std::optional<std::string> FirstDifference(const v1::RunConfig& old_config, const v1::RunConfig& new_config) {
  const std::string before = AlgorithmName(old_config), now = AlgorithmName(new_config);
  if (before != now) return absl::StrCat("algorithm: ", before, " -> ", now);
  return DifferenceWithin(WhatIsLearned(old_config), WhatIsLearned(new_config), "");
}

std::string RunId(const v1::RunConfig& config) {
  const std::string text = ToYaml(WhatIsLearned(config));
  return absl::StrCat(config.name(), "-", absl::StrFormat("%016x", XXH3_64bits(text.data(), text.size())).substr(0, 8));
}

}  // namespace skein
