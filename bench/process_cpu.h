// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>

namespace skein {

// CPU seconds of this process so far, user and system, all threads.
double OwnCpuSeconds();

// CPU seconds of each live thread of a process by thread id, in steps of 0.01; empty if there is no such process.
std::map<pid_t, double> ThreadCpuSeconds(pid_t process);

// CPU seconds that threads used between two readings, without the `apart` busiest threads.
double CpuSecondsOfOthers(const std::map<pid_t, double>& before, const std::map<pid_t, double>& after, size_t apart);

}  // namespace skein
