// SPDX-License-Identifier: Apache-2.0
#include "bench/process_cpu.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/process/file.h"

namespace skein {
namespace {

// User and system time are the 14th and 15th field of a stat line, the 12th and 13th after the name's ")".
constexpr size_t kUserField = 11;

double SecondsOfStat(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(name_end + 1), ' ', absl::SkipWhitespace());
  int64_t user = 0, system = 0;
  if (fields.size() <= kUserField + 1 || !absl::SimpleAtoi(fields[kUserField], &user) ||
      !absl::SimpleAtoi(fields[kUserField + 1], &system)) {
    return 0;
  }
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

double OwnCpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::map<pid_t, double> ThreadCpuSeconds(pid_t process) {
  std::map<pid_t, double> seconds;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", process, "/task"), error)) {
    int id = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &id)) continue;
    const auto stat = ReadFile(entry.path().string() + "/stat");
    if (stat.ok()) seconds[id] = SecondsOfStat(*stat);
  }
  return seconds;
}

double CpuSecondsOfOthers(const std::map<pid_t, double>& before, const std::map<pid_t, double>& after, size_t apart) {
  std::vector<double> used;
  for (const auto& [id, seconds] : after) {
    const auto earlier = before.find(id);
    used.push_back(seconds - (earlier == before.end() ? 0 : earlier->second));
  }
  std::sort(used.begin(), used.end(), std::greater<>());
  used.erase(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(std::min(apart, used.size())));
  return std::accumulate(used.begin(), used.end(), 0.0);
}

}  // namespace skein
