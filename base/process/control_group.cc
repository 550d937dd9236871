// SPDX-License-Identifier: Apache-2.0
#include "base/process/control_group.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/process/file.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPeriodMicroseconds = 100'000;
// 100 times the usual weight, of versions 2 and 1: the most that version 2 takes.
constexpr char kWeight[] = "10000", kShares[] = "102400";

// Files of the kernel are written by one call, and say by its error what is wrong.
absl::Status Write(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return SystemError(errno, absl::StrCat("cannot write ", path));
  const ssize_t written = write(fd, text.data(), text.size());
  const int error = errno;
  close(fd);
  if (written < 0) return SystemError(error, absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

std::string Read(const std::string& path) {
  return std::string(absl::StripAsciiWhitespace(ReadFile(path, 1 << 20).value_or("")));
}

bool HasWord(const std::string& text, const std::string& word) {
  const std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" ,\n"), absl::SkipEmpty());
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Of processes that held themselves and have ended; nobody else removes their groups.
void RemoveGroupsOfTheDead(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::vector<std::string> parts = absl::StrSplit(it->path().filename().string(), '-');
    pid_t pid = 0;
    const bool ours = parts.size() >= 2 && parts[0] == "skein" && absl::SimpleAtoi(parts[1], &pid) && pid > 0;
    if (!ours || kill(pid, 0) == 0 || errno != ESRCH) continue;
    RemoveGroupsOfTheDead(it->path().string());
    rmdir(it->path().c_str());  // Refused while there is a process.
  }
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Of version 1: a line "4:cpu,cpuacct:/path". In a container the mount may begin at the container's own group.
std::string FolderOfVersion1(const std::string& mount, const std::string& membership, const std::string& controller) {
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(membership, '\n'))) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !HasWord(parts[1], controller)) continue;
    for (const std::string& name : {controller, parts[1]}) {
      const std::string root = absl::StrCat(mount, "/", name);
      if (IsFolder(root + parts[2])) return root + (parts[2] == "/" ? "" : parts[2]);
      if (IsFolder(root)) return root;
    }
  }
  return "";
}

std::string FolderOfVersion2(const std::string& mount, const std::string& membership) {
  const char* const base = std::getenv(kControlGroupVariable);
  if (base != nullptr && IsFolder(base)) return base;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(membership, '\n'))) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || parts[0] != "0") continue;
    for (const std::string& root : {mount, mount + "/unified"}) {
      if (!fs::exists(root + "/cgroup.controllers")) continue;
      return IsFolder(root + parts[2]) ? root + (parts[2] == "/" ? "" : parts[2]) : root;
    }
  }
  return "";
}

}  // namespace

ControlGroup::~ControlGroup() {
  for (const std::string& folder : folders_) {
    RemoveGroupsOfTheDead(folder);  // Those that its processes have made.
    // A process that was killed leaves its group a moment after its parent has been told.
    for (int i = 0; i < 50 && rmdir(folder.c_str()) != 0 && errno == EBUSY; ++i) absl::SleepFor(absl::Milliseconds(2));
  }
}

absl::Status ControlGroup::Add(pid_t pid) const {
  for (const std::string& folder : folders_) {
    if (absl::Status s = Write(folder + "/cgroup.procs", absl::StrCat(pid)); !s.ok()) return s;
  }
  return absl::OkStatus();
}

bool ControlGroup::RanOutOfMemory() const {
  if (memory_events_.empty()) return false;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(Read(memory_events_), '\n'))) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() == 2 && words[0] == "oom_kill" && words[1] != "0") return true;
  }
  return false;
}

ControlGroups::ControlGroups(std::string mount, const std::string& membership) {
  const std::string unified = FolderOfVersion2(mount, membership);
  const std::string controllers = unified.empty() ? "" : Read(unified + "/cgroup.controllers");
  for (const auto& [controller, place] : {std::pair("cpu", &cpu_), std::pair("memory", &memory_)}) {
    if (HasWord(controllers, controller)) {
      *place = {unified, true};
    } else {
      *place = {FolderOfVersion1(mount, membership, controller), false};
    }
  }
}

ControlGroups ControlGroups::OfThisProcess() {
  return {"/sys/fs/cgroup", ReadFile("/proc/self/cgroup", 1 << 20).value_or("")};
}

// Whether groups below `place` can be limited by the controller. In version 1 always, if they can be made.
bool ControlGroups::Prepare(const std::string& controller, const Place& place) {
  if (!place.unified) return true;
  const std::string file = place.folder + "/cgroup.subtree_control";
  if (HasWord(Read(file), controller)) return true;
  const std::string wanted = absl::StrCat("+", controller);
  if (Write(file, wanted).ok()) return true;
  // This process is in the way. If it is the only one, it moves down.
  const std::string own = absl::StrCat(place.folder, "/skein-", getpid());
  if (mkdir(own.c_str(), 0755) != 0 && errno != EEXIST) return false;
  if (!Write(own + "/cgroup.procs", absl::StrCat(getpid())).ok()) {
    rmdir(own.c_str());
    return false;
  }
  if (Write(file, wanted).ok()) return true;
  Write(place.folder + "/cgroup.procs", absl::StrCat(getpid())).IgnoreError();
  rmdir(own.c_str());
  return false;
}

std::unique_ptr<ControlGroup> ControlGroups::Make(const std::string& name, const ResourceShare& share) {
  std::unique_ptr<ControlGroup> group(new ControlGroup);
  // The group's folder in that hierarchy; empty: it cannot be made.
  const auto folder_in = [&](const std::string& controller, const Place& place) -> std::string {
    if (place.folder.empty() || !Prepare(controller, place)) return "";
    const std::string folder = absl::StrCat(place.folder, "/", name);
    const auto known = std::find(group->folders_.begin(), group->folders_.end(), folder);
    if (known != group->folders_.end()) return folder;
    RemoveGroupsOfTheDead(place.folder);
    if (mkdir(folder.c_str(), 0755) != 0) return "";
    group->folders_.push_back(folder);
    return folder;
  };
  if (share.cpus) {
    const std::string folder = folder_in("cpu", cpu_);
    const auto quota = static_cast<int64_t>(*share.cpus * kPeriodMicroseconds);
    if (!folder.empty() && cpu_.unified) {
      group->limits_cpu_ = Write(folder + "/cpu.max", absl::StrCat(quota, " ", kPeriodMicroseconds)).ok();
      if (group->limits_cpu_) Write(folder + "/cpu.weight", kWeight).IgnoreError();
    } else if (!folder.empty()) {
      group->limits_cpu_ = Write(folder + "/cpu.cfs_period_us", absl::StrCat(kPeriodMicroseconds)).ok() &&
                           Write(folder + "/cpu.cfs_quota_us", absl::StrCat(quota)).ok();
      if (group->limits_cpu_) Write(folder + "/cpu.shares", kShares).IgnoreError();
    }
  }
  if (share.memory_bytes) {
    const std::string folder = folder_in("memory", memory_);
    const std::string bytes = absl::StrCat(*share.memory_bytes);
    if (!folder.empty() && memory_.unified) {
      group->limits_memory_ = Write(folder + "/memory.max", bytes).ok();
      Write(folder + "/memory.swap.max", "0").IgnoreError();  // Where there is no swap, neither is the file.
      group->memory_events_ = folder + "/memory.events";
    } else if (!folder.empty()) {
      group->limits_memory_ = Write(folder + "/memory.limit_in_bytes", bytes).ok();
      Write(folder + "/memory.memsw.limit_in_bytes", bytes).IgnoreError();
      group->memory_events_ = folder + "/memory.oom_control";
    }
  }
  if (!group->limits_cpu_ && !group->limits_memory_) return nullptr;
  if (cpu_.unified || memory_.unified) {
    setenv(kControlGroupVariable, (cpu_.unified ? cpu_ : memory_).folder.c_str(), 1);
  }
  return group;
}

std::optional<double> ControlGroups::CpuLimit() const {
  if (cpu_.folder.empty()) return std::nullopt;
  double quota = 0, period = 0;
  if (cpu_.unified) {
    const std::vector<std::string> words = absl::StrSplit(Read(cpu_.folder + "/cpu.max"), ' ');
    if (words.size() != 2 || !absl::SimpleAtod(words[0], &quota) || !absl::SimpleAtod(words[1], &period)) {
      return std::nullopt;
    }
  } else if (!absl::SimpleAtod(Read(cpu_.folder + "/cpu.cfs_quota_us"), &quota) ||
             !absl::SimpleAtod(Read(cpu_.folder + "/cpu.cfs_period_us"), &period)) {
    return std::nullopt;
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<uint64_t> ControlGroups::MemoryLimit() const {
  if (memory_.folder.empty()) return std::nullopt;
  uint64_t bytes = 0;
  const std::string file = memory_.unified ? "/memory.max" : "/memory.limit_in_bytes";
  if (!absl::SimpleAtoi(Read(memory_.folder + file), &bytes)) return std::nullopt;  // "max".
  return bytes;
}

}  // namespace skein
