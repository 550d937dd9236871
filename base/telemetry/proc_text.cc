// SPDX-License-Identifier: Apache-2.0
#include "base/telemetry/proc_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace skein {
namespace {

std::vector<absl::string_view> Words(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
}

uint64_t Number(const std::vector<absl::string_view>& words, size_t index) {
  uint64_t value = 0;
  if (index >= words.size() || !absl::SimpleAtoi(words[index], &value)) return 0;
  return value;
}

// Of "pid (name) state ...": the word `index` after the name, which may hold anything.
uint64_t NumberAfterName(const std::string& stat, size_t index) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  return Number(Words(absl::string_view(stat).substr(name_end + 1)), index);
}

}  // namespace

NodeCpuTimes ParseCpuTimes(const std::string& proc_stat) {
  constexpr size_t kIdle = 4;    // "cpuN user nice system idle iowait irq softirq steal guest guest_nice";
  constexpr size_t kIoWait = 5;  // guest times are in user and nice already.
  constexpr size_t kLast = 8;
  constexpr size_t kMaxCores = 1 << 16;
  NodeCpuTimes result;
  for (const absl::string_view line : absl::StrSplit(proc_stat, '\n')) {
    const std::vector<absl::string_view> words = Words(line);
    absl::string_view name = words.empty() ? "" : words[0];
    if (!absl::ConsumePrefix(&name, "cpu")) continue;
    CpuTimes times;
    for (size_t i = 1; i <= kLast; ++i) times.total += Number(words, i);
    times.busy = times.total - Number(words, kIdle) - Number(words, kIoWait);
    size_t core = 0;
    if (name.empty()) {
      result.all = times;
    } else if (absl::SimpleAtoi(name, &core) && core < kMaxCores) {
      result.core.resize(std::max(result.core.size(), core + 1));
      result.core[core] = times;
    }
  }
  return result;
}

double BusyRatio(const CpuTimes& before, const CpuTimes& after) {
  if (after.total <= before.total || after.busy <= before.busy) return 0;
  return std::min(1.0, static_cast<double>(after.busy - before.busy) / static_cast<double>(after.total - before.total));
}

uint64_t ParseMemInfoBytes(const std::string& meminfo, const std::string& name) {
  for (absl::string_view line : absl::StrSplit(meminfo, '\n')) {
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, ":")) return Number(Words(line), 0) * 1024;
  }
  return 0;
}

uint32_t ParseThreads(const std::string& self_stat) { return static_cast<uint32_t>(NumberAfterName(self_stat, 17)); }

uint64_t ParseRunTicks(const std::string& stat) { return NumberAfterName(stat, 11) + NumberAfterName(stat, 12); }

uint64_t ParseEndedChildrenTicks(const std::string& stat) {
  return NumberAfterName(stat, 13) + NumberAfterName(stat, 14);
}

uint64_t ParseParent(const std::string& stat) { return NumberAfterName(stat, 1); }

uint64_t ParseStatResidentPages(const std::string& stat) { return NumberAfterName(stat, 21); }

uint64_t ParseStartTicks(const std::string& self_stat) { return NumberAfterName(self_stat, 19); }

uint64_t ParseBootTime(const std::string& proc_stat) {
  for (absl::string_view line : absl::StrSplit(proc_stat, '\n')) {
    if (absl::ConsumePrefix(&line, "btime ")) return Number(Words(line), 0);
  }
  return 0;
}

uint64_t ParseResidentPages(const std::string& self_statm) { return Number(Words(self_statm), 1); }

}  // namespace skein
