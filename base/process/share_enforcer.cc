// SPDX-License-Identifier: Apache-2.0
#include "base/process/share_enforcer.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/process/exit_code.h"
#include "base/process/system_error.h"

namespace skein {
namespace {

// Each step of niceness is worth so much of the CPU's time beside a process of the usual one: sched(7).
constexpr double kShareOfNiceness = 1.25;
constexpr int kMaxNiceness = 19;

// The CPUs on which this process may run.
std::vector<int> AllowedCpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<pid_t> ThreadsOf(pid_t pid) {
  std::vector<pid_t> threads;
  std::error_code error;
  for (std::filesystem::directory_iterator it(absl::StrCat("/proc/", pid, "/task"), error), end; !error && it != end;
       it.increment(error)) {
    pid_t thread = 0;
    if (absl::SimpleAtoi(it->path().filename().string(), &thread)) threads.push_back(thread);
  }
  return threads;
}

// So that a process with `share` of the time of its CPUs, 0-1, gets that beside one that wants all of it. From a half
// on that would take a priority above the usual one, which is root's: then it gets a half.
int NicenessFor(double share) {
  if (share >= 0.5) return 0;
  const double steps = std::log((1 - share) / share) / std::log(kShareOfNiceness);
  return std::min(kMaxNiceness, static_cast<int>(std::lround(steps)));
}

// What EndWhenOutOfMemory() prints; formatted in time, because there is no memory then.
char* out_of_memory_line = nullptr;

void EndNow() {
  const ssize_t ignored = write(STDERR_FILENO, out_of_memory_line, strlen(out_of_memory_line));
  static_cast<void>(ignored);
  _exit(kExitIo);
}

std::string MemoryText(uint64_t bytes) { return absl::StrCat((bytes + (1 << 20) - 1) >> 20, " MiB"); }

}  // namespace

HeldShare::~HeldShare() {
  for (const int cpu : cpus_) (*cpu_load_)[cpu] -= *share_.cpus / static_cast<double>(cpus_.size());
}

std::string HeldShare::DescribeKill() const {
  if (group_ == nullptr || !group_->RanOutOfMemory()) return "";
  return absl::StrCat("it needed more memory than its share of ", MemoryText(*share_.memory_bytes), "; raise ",
                      share_.setting, ".memory");
}

ShareEnforcer::ShareEnforcer(ControlGroups groups)
    : groups_(std::move(groups)), cpu_load_(std::make_shared<std::vector<double>>(CPU_SETSIZE, 0.0)) {}

absl::StatusOr<std::unique_ptr<HeldShare>> ShareEnforcer::Hold(pid_t pid, const std::string& name,
                                                               const ResourceShare& share) {
  std::unique_ptr<HeldShare> held(new HeldShare);
  held->share_ = share;
  held->cpu_load_ = cpu_load_;
  held->group_ = groups_.Make(absl::StrCat("skein-", getpid(), "-", name), share);
  if (held->group_ != nullptr) {
    if (absl::Status s = held->group_->Add(pid); !s.ok()) held->group_ = nullptr;
  }
  if (share.cpus) {
    if (held->group_ != nullptr && held->group_->limits_cpu()) {
      held->how_ = "CPU by a control group";
    } else {
      if (absl::Status s = HoldCpu(pid, *share.cpus, held.get()); !s.ok()) return s;
      held->how_ = "CPU by affinity and priority";
    }
  }
  if (share.memory_bytes) {
    absl::StrAppend(&held->how_, held->how_.empty() ? "" : ", ");
    if (held->group_ != nullptr && held->group_->limits_memory()) {
      absl::StrAppend(&held->how_, "memory by a control group");
    } else {
      const rlimit limit = {*share.memory_bytes, *share.memory_bytes};
      if (prlimit(pid, RLIMIT_DATA, &limit, nullptr) != 0) {
        return SystemError(errno, absl::StrCat("cannot limit the memory of ", name, " (", share.setting, ".memory)"));
      }
      absl::StrAppend(&held->how_, "memory by a limit of the data segment");
    }
  }
  return held;
}

absl::Status ShareEnforcer::HoldCpu(pid_t pid, double cpus, HeldShare* held) {
  std::vector<int> allowed = AllowedCpus();
  const auto wanted = static_cast<size_t>(std::ceil(cpus));
  if (allowed.size() > wanted) {
    // The least used ones; of equals others for each process that asks, since each has an enforcer of its own.
    std::rotate(allowed.begin(), allowed.begin() + static_cast<size_t>(getpid()) % allowed.size(), allowed.end());
    std::stable_sort(allowed.begin(), allowed.end(),
                     [this](int a, int b) { return (*cpu_load_)[a] < (*cpu_load_)[b]; });
    allowed.resize(wanted);
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : allowed) {
    CPU_SET(cpu, &set);
    (*cpu_load_)[cpu] += cpus / static_cast<double>(allowed.size());
  }
  held->cpus_ = allowed;
  const int niceness = allowed.empty() ? 0 : NicenessFor(cpus / static_cast<double>(allowed.size()));
  // Threads of a process that has some already; twice, for those that begin meanwhile.
  for (int round = 0; round < 2; ++round) {
    for (const pid_t thread : ThreadsOf(pid)) {
      const bool set_failed = sched_setaffinity(thread, sizeof(set), &set) != 0;
      if (set_failed && errno != ESRCH) return SystemError(errno, absl::StrCat("cannot choose CPUs of process ", pid));
      if (getpriority(PRIO_PROCESS, thread) < niceness) setpriority(PRIO_PROCESS, thread, niceness);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> HoldThisProcess(const std::string& name, const ResourceShare& share) {
  static HeldShare* held = nullptr;  // Until the end: a process cannot remove the group that it is in.
  if (held != nullptr || share.empty() || std::getenv(kShareHeldVariable) != nullptr) return "";
  for (const std::string& variable : GpuEnvironment(share)) {
    const size_t equals = variable.find('=');
    setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
  auto holding = ShareEnforcer().Hold(getpid(), name, share);
  if (!holding.ok()) return holding.status();
  held = holding->release();
  return held->how();
}

std::vector<std::string> GpuEnvironment(const ResourceShare& share, const std::vector<uint64_t>& gpu_memory_bytes) {
  if (!share.gpus) return {};
  if (*share.gpus == 0) return {"CUDA_VISIBLE_DEVICES="};
  if (*share.gpus >= 1) return {};
  const auto percent = std::max(int64_t{1}, static_cast<int64_t>(std::lround(*share.gpus * 100)));
  std::vector<std::string> variables = {absl::StrCat("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=", percent)};
  std::vector<std::string> limits;
  for (size_t i = 0; i < gpu_memory_bytes.size(); ++i) {
    const double mebibytes = *share.gpus * static_cast<double>(gpu_memory_bytes[i] >> 20);
    limits.push_back(absl::StrCat(i, "=", std::max(int64_t{1}, static_cast<int64_t>(mebibytes)), "M"));
  }
  if (!limits.empty()) {
    variables.push_back(absl::StrCat("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=", absl::StrJoin(limits, ",")));
  }
  return variables;
}

void EndWhenOutOfMemory(const std::string& program, const ResourceShare& share) {
  const std::string why = share.memory_bytes ? absl::StrCat("more than its share of ", MemoryText(*share.memory_bytes),
                                                            " is needed; raise ", share.setting, ".memory")
                                             : std::string("the machine has no more");
  char* const before =
      std::exchange(out_of_memory_line, strdup(absl::StrCat(program, ": out of memory: ", why, "\n").c_str()));
  std::set_new_handler(EndNow);
  free(before);
}

}  // namespace skein
