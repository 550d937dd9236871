// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bench/statistics.h"

namespace skein {

// What a figure was measured on: processor, cores, memory, operating system, compiler, build type, versions of the
// libraries that matter, and the load average now. An empty `torch_version` leaves LibTorch out.
Json DescribeMachine(const std::string& torch_version);

// The value of the first line "KEY <separators> VALUE" of such a text as /proc/cpuinfo; "" if there is none.
std::string ValueOfLine(const std::string& text, const std::string& key);

}  // namespace skein
