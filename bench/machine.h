// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bench/statistics.h"

namespace skein {

// Describes the machine of a measurement: processor, cores, memory, operating system, compiler, build type, versions of
// the main libraries, and the current load average. Without LibTorch if `torch_version` is empty.
Json DescribeMachine(const std::string& torch_version);

// The value of the first line "KEY <separators> VALUE" in a text such as /proc/cpuinfo; "" if there is none.
std::string ValueOfLine(const std::string& text, const std::string& key);

}  // namespace skein
