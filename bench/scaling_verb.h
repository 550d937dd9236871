// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/verbs.h"

namespace skein {

// `skein bench scaling`: the parallel-efficiency study.
void AddBenchScaling(CLI::App* app, BenchAction* action);

}  // namespace skein
