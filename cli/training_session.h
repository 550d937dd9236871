// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/session_result.h"
#include "launch/launch_plan.h"

namespace skein {

// Runs `skein train` and `skein head` once their flags are parsed:
//   plan -> run directory -> supervise until the target or a signal -> evaluate -> report
// Handles SIGINT and SIGTERM; call it before any other thread is started. `command` precedes error messages, e.g.
// "skein train". `program_folder` holds the programs it starts. Fills `result`, unless that is nullptr. Returns the
// exit code.
int RunTraining(const LaunchOptions& options, const std::string& command, const std::string& program_folder,
                SessionResult* result = nullptr);

}  // namespace skein
