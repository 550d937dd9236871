// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "bench/scaling_analysis.h"

// A study as a picture of six charts, drawn by gnuplot from a table and a script that stay beside it.
namespace skein {

// One line a configuration, columns separated by tabs with their names on top; "?" = no such figure.
std::string DashboardData(const ScalingAnalysis& analysis);

// Reads dashboard.dat and draws dashboard.png, both in the folder that gnuplot runs in.
std::string DashboardScript(const ScalingResults& results, const ScalingAnalysis& analysis);

// Writes dashboard.dat and dashboard.gp into `folder` and has gnuplot draw dashboard.png. Unavailable: gnuplot is not
// installed (says what to do); the two files are there. Internal: gnuplot failed, with what it says. Errors of the
// files as WriteFileAtomically.
absl::Status WriteDashboard(const std::string& folder, const ScalingResults& results, const ScalingAnalysis& analysis);

}  // namespace skein
