// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench/scaling_analysis.h"

namespace skein {

// What a study's figures say, one paragraph each, every sentence derived from them. A pure function. REQUIRES: the
// first row is 1x1.
std::vector<std::string> ScalingFindings(const ScalingResults& results, const ScalingAnalysis& analysis);

}  // namespace skein
