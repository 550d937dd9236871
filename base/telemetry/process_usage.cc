// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/process/file.h"
#include "base/telemetry/proc_text.h"

namespace skein {

ProcessUsage UsageOfTrees(const std::vector<pid_t>& roots) {
  namespace fs = std::filesystem;
  if (roots.empty()) return {};
  std::map<pid_t, std::string> stats;
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(it->path().filename().string(), &pid)) continue;
    std::string stat = ReadFile(absl::StrCat("/proc/", pid, "/stat")).value_or("");
    children.emplace(static_cast<pid_t>(ParseParent(stat)), pid);
    stats[pid] = std::move(stat);
  }
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  ProcessUsage usage;
  std::vector<pid_t> left = roots;
  while (!left.empty()) {
    const pid_t pid = left.back();
    left.pop_back();
    const std::string& stat = stats[pid];
    usage.cpu_seconds += static_cast<double>(ParseRunTicks(stat) + ParseEndedChildrenTicks(stat)) / ticks;
    usage.memory_bytes += ParseStatResidentPages(stat) * page;
    const auto [begin, end] = children.equal_range(pid);
    for (auto it = begin; it != end; ++it) left.push_back(it->second);
  }
  return usage;
}

double CpuSecondsOfEndedChildren() {
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  constexpr double kMicro = 1e-6;
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * kMicro;
}

}  // namespace skein
