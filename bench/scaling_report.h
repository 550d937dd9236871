// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "bench/scaling_analysis.h"

namespace skein {

// Formats a study as tables, for report.md. A pure function. REQUIRES: the first row is 1x1.
std::string FormatScalingReport(const ScalingResults& results, const ScalingAnalysis& analysis);

// The table of configurations alone, for a terminal.
std::string FormatScalingTable(const ScalingAnalysis& analysis);

}  // namespace skein
