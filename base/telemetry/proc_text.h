// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Parses the text files in /proc for the resource sampler. Missing or malformed lines give 0.
namespace skein {

// Ticks since boot, from /proc/stat.
struct CpuTimes {
  uint64_t busy = 0;
  uint64_t total = 0;
};
struct NodeCpuTimes {
  CpuTimes all;
  std::vector<CpuTimes> core;  // By core number.
};
NodeCpuTimes ParseCpuTimes(const std::string& proc_stat);

// Busy share between two readings, 0-1; 0 when no tick has passed.
double BusyRatio(const CpuTimes& before, const CpuTimes& after);

// Bytes of one line of /proc/meminfo, e.g. "MemTotal".
uint64_t ParseMemInfoBytes(const std::string& meminfo, const std::string& name);

// The number of threads in /proc/self/stat.
uint32_t ParseThreads(const std::string& self_stat);

// Processor time of a process so far, user and system, in ticks, from its /proc/PID/stat.
uint64_t ParseRunTicks(const std::string& stat);

// Of its children that have ended and were waited for, the same.
uint64_t ParseEndedChildrenTicks(const std::string& stat);

// Its parent's process id.
uint64_t ParseParent(const std::string& stat);

// Its resident pages.
uint64_t ParseStatResidentPages(const std::string& stat);

// When a process started, in ticks since boot, from its /proc/PID/stat.
uint64_t ParseStartTicks(const std::string& self_stat);

// When the node booted, in seconds of Unix time, from /proc/stat.
uint64_t ParseBootTime(const std::string& proc_stat);

// Resident pages in /proc/self/statm.
uint64_t ParseResidentPages(const std::string& self_statm);

}  // namespace skein
