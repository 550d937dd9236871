// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace skein {

// The CPU time and memory that processes use.
struct ProcessUsage {
  double cpu_seconds = 0;     // User and system.
  uint64_t memory_bytes = 0;  // Resident.
};

// What these processes and all their descendants use, with the CPU time of those that have ended and were waited for. A
// process that ends meanwhile may be missing.
ProcessUsage UsageOfTrees(const std::vector<pid_t>& roots);

// CPU time of this process's children that have ended, with that of their descendants.
double CpuSecondsOfEndedChildren();

}  // namespace skein
